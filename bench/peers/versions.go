package main

import (
	"runtime"
	"runtime/debug"
	"sync"
)

// build returns the versions of the modules that this program was built of.
var build = sync.OnceValue(func() map[string]string {
	versions := make(map[string]string)
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	for _, m := range info.Deps {
		version := m.Version
		if m.Replace != nil {
			version = "this tree"
		}
		versions[m.Path] = version
	}
	return versions
})

// versionOf returns the module's version; without a module, that of Go.
func versionOf(module string) string {
	if module == "" {
		return runtime.Version()
	}
	if v, ok := build()[module]; ok {
		return v
	}
	return "unknown"
}
