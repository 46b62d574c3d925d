package main

import (
	"fmt"
	"os"
)

// historyFile is where recorded histories go, one a line, each as soon as it is recorded:
// what a run that fails later had seen is worth the most. It is taken hold of before
// anything runs, as an output is, and added to where it is there already.
type historyFile struct {
	file *os.File
	made bool // by us
}

// openHistoryFile returns nil where no file is named. The reports go elsewhere.
func openHistoryFile(name string, reports ...string) (*historyFile, error) {
	if name == "" {
		return nil, nil
	}
	_, err := os.Stat(name)
	h := &historyFile{made: os.IsNotExist(err)}
	if h.file, err = os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
		return nil, fmt.Errorf("--history: cannot write %s: %w", name, pathless(err))
	}
	for _, report := range reports {
		if isSame(report, name) {
			h.close()
			return nil, fmt.Errorf("--history: %s is where the report goes: name another file", name)
		}
	}
	return h, nil
}

// add writes one line.
func (h *historyFile) add(line []byte) error {
	if _, err := h.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("--history: %w", err)
	}
	return nil
}

// close leaves no empty file behind.
func (h *historyFile) close() {
	if h == nil {
		return
	}
	info, err := h.file.Stat()
	h.file.Close()
	if h.made && err == nil && info.Size() == 0 {
		os.Remove(h.file.Name())
	}
}
