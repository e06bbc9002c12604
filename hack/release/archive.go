// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Modes of packed files, whatever the umask was when they were written.
const (
	dataMode    fs.FileMode = 0o644
	programMode fs.FileMode = 0o755
)

// packed is a file in an archive.
type packed struct {
	content []byte
	mode    fs.FileMode
}

// contents are path in an archive -> file.
type contents map[string]packed

// addTree adds all files below a directory that are regular, below another one in the archive.
func (c contents) addTree(dir, below string) error {
	return filepath.WalkDir(dir, func(path string, found fs.DirEntry, err error) error {
		if err != nil || !found.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return c.addFile(path, filepath.ToSlash(filepath.Join(below, name)), dataMode)
	})
}

func (c contents) addFile(path, name string, mode fs.FileMode) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	c[name] = packed{content, mode}
	return nil
}

// targz packs the files in the order of their names, all of the given time and of nobody.
func (c contents) targz(at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: name, Size: int64(len(c[name].content)), Mode: int64(c[name].mode),
			ModTime: at, Format: tar.FormatUSTAR,
		}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(c[name].content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// zip packs the files alike.
func (c contents) zip(at time.Time) ([]byte, error) {
	var buffer bytes.Buffer
	archive := zip.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(c)) {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: at.UTC()}
		header.SetMode(c[name].mode)
		file, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := file.Write(c[name].content); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	return buffer.Bytes(), nil
}

// archiveName is the name of a binary's archive, with the ending that its platform's users expect.
func (b binary) archiveName(version string) string {
	name := strings.Join([]string{b.program.name, "v" + version, b.platform.os, b.platform.arch}, "_")
	if b.platform.os == "windows" {
		return name + ".zip"
	}
	return name + ".tar.gz"
}

// archive packs a binary with its licence.
func (b binary) archive(licence []byte, at time.Time) ([]byte, error) {
	files := contents{"LICENSE": {licence, dataMode}}
	if err := files.addFile(b.path, b.fileName(), programMode); err != nil {
		return nil, err
	}
	if b.platform.os == "windows" {
		return files.zip(at)
	}
	return files.targz(at)
}
