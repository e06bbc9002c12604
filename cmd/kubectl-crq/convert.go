// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/conversion"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

// stdin is the file name of piped input.
const stdin = "-"

func newConvert(env *environment) *cobra.Command {
	var files []string
	var recursive, strict bool
	command := &cobra.Command{
		Use:   "convert -f FILE",
		Short: "Turn the shared quotas of OpenShift, KubeVirt, HNC and Capsule into ClusterResourceQuotas",
		Long: "Turn the shared quotas of others into ClusterResourceQuotas: OpenShift's ClusterResourceQuota, KubeVirt's " +
			"ApplicationAwareClusterResourceQuota, HNC's HierarchicalResourceQuota, and the quotas of Capsule's Tenant, " +
			"ResourcePool and GlobalResourceQuota. " +
			"Comments tell what could not be carried over, and what works differently.\n\n" +
			"It reads files, asks no cluster, and changes nothing. It fails if something could not be converted at all; " +
			"what could, is printed.",
		Example: "  # What is there now, as ClusterResourceQuotas\n" +
			"  kubectl get tenants -o yaml | kubectl crq convert -f - >quotas.yaml\n\n" +
			"  # All quotas in a directory; nothing is printed unless all of it can be carried over\n" +
			"  kubectl crq convert -R -f manifests --strict",
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return runConvert(env, files, recursive, strict) },
	}
	flags := command.Flags()
	flags.StringSliceVarP(&files, "filename", "f", nil, "file or directory with the manifests, or - for what is piped in")
	flags.BoolVarP(&recursive, "recursive", "R", false, "read the directories below a directory, too")
	flags.BoolVar(&strict, "strict", false, "print no quota, and fail, if anything could not be carried over")
	return command
}

func runConvert(env *environment, files []string, recursive, strict bool) error {
	if len(files) == 0 {
		return outcomes.NoFile.Err()
	}
	var objects []conversion.Object
	for _, named := range files {
		objects = append(objects, readObjects(env.streams.In, named, recursive)...)
	}
	converted := conversion.Convert(objects, *env.config.Namespace)
	total := conversion.Sum(converted)
	lacks := strict && total.Lost+total.Refused > 0
	text, err := conversion.YAML(converted)
	if lacks || total.Quotas == 0 {
		text = nil
		_, _ = env.streams.ErrOut.Write(conversion.Comments(converted)) // an error here couldn't be printed
	}
	if err := errors.Join(err, env.print(string(text))); err != nil {
		return err
	}
	switch {
	case total.Refused > 0:
		return outcomes.NotConverted.Err(total.Refused, "# "+string(conversion.Refused))
	case lacks:
		return outcomes.NotCarriedOver.Err(total.Lost, "# "+string(conversion.Lost))
	case total.Quotas == 0:
		return outcomes.NothingShared.Err()
	}
	return nil
}

// readObjects reads a file, or the manifests of a directory in the order of their names. A text that can't be read, or
// is skipped on purpose, is an object that says so.
func readObjects(in io.Reader, named string, recursive bool) (objects []conversion.Object) {
	switch {
	case named == stdin:
		content, err := io.ReadAll(in)
		return readContent("standard input", content, err)
	case strings.Contains(named, "://"):
		return []conversion.Object{conversion.NoObject(conversion.Refused, named, "files are read, not addresses: download it first")}
	}
	return readTree(named, recursive)
}

// readTree reads a file, or a directory, without those within it unless it is recursive.
func readTree(named string, recursive bool) (objects []conversion.Object) {
	var passed []string
	root := rootOf(named)
	failed := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			objects = append(objects, readContent(path, nil, err)...)
		case path != root && entry.IsDir() && !recursive:
			passed = append(passed, entry.Name()+"/")
			return filepath.SkipDir
		case entry.IsDir():
		case path == root || isManifest(path):
			content, err := os.ReadFile(path) //nolint:gosec // the user names the file
			objects = append(objects, readContent(path, content, err)...)
		default:
			passed = append(passed, strings.TrimPrefix(path, root))
		}
		return nil
	})
	if failed != nil {
		objects = append(objects, readContent(named, nil, failed)...)
	}
	if len(passed) > 0 {
		objects = append(objects, conversion.NoObject(conversion.Skipped, named, "not read, because they don't end in .yaml, .yml "+
			"or .json, or are directories without --recursive: "+strings.Join(passed, ", ")+": name them by --filename"))
	}
	return objects
}

// rootOf returns the path to walk: a symbolic link to a directory is followed only with a separator at its end.
func rootOf(named string) string {
	if info, err := os.Stat(named); err == nil && info.IsDir() {
		return filepath.Clean(named) + string(filepath.Separator)
	}
	return named
}

func isManifest(path string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
}

func readContent(file string, content []byte, err error) []conversion.Object {
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		err = cause.Err
	}
	if err != nil {
		return []conversion.Object{conversion.NoObject(conversion.Refused, file, "it can't be read: "+err.Error())}
	}
	return conversion.Read(file, content)
}
