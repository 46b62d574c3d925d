// Package config makes running caches of a YAML document, and changes them while they
// run when the document changes.
//
// [Parse] reads a document and tells all that is wrong with it, with its place and
// what was probably meant. [Build] makes a named cache of it: types, loader and key
// function come from code, everything else from the document. A [Set] holds what was
// built, and applies later versions of the document to it.
//
// One description of the fields, in document.go, is what the parser, the JSON schema
// ([Registry.Schema]) and docs/configuration.md come from.
package config

//go:generate go test -run TestGenerated -update .
