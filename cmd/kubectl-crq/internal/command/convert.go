// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/conversion"
)

// stdin is the file name of what is piped in.
const stdin = "-"

// convertOptions are the flags of convert.
type convertOptions struct {
	files     []string
	recursive bool
	output    string
	strict    bool
}

func newConvert(env *environment) *cobra.Command {
	options := convertOptions{output: "yaml"}
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
		RunE: func(*cobra.Command, []string) error { return runConvert(env, options) },
	}
	flags := command.Flags()
	flags.StringSliceVarP(&options.files, "filename", "f", nil, "file or directory with the manifests, or - for what is piped in")
	flags.BoolVarP(&options.recursive, "recursive", "R", false, "read the directories below a directory, too")
	flags.StringVarP(&options.output, "output", "o", options.output, "yaml, or json with the comments on standard error")
	flags.BoolVar(&options.strict, "strict", false, "print no quota, and fail, if anything could not be carried over")
	return command
}

func runConvert(env *environment, options convertOptions) error {
	if len(options.files) == 0 {
		return errors.New("name the files to convert by --filename")
	}
	if options.output != "yaml" && options.output != "json" {
		return fmt.Errorf("--output is yaml or json, not %q", options.output)
	}
	objects, err := readObjects(env.streams.In, options)
	if err != nil {
		return err
	}
	outcomes := conversion.Convert(objects, *env.config.Namespace)
	total := conversion.Sum(outcomes)
	lacks := options.strict && total.Lost+total.Refused > 0
	if err := printOutcomes(env, outcomes, options.output, lacks || total.Quotas == 0); err != nil {
		return err
	}
	switch {
	case total.Refused > 0:
		return fmt.Errorf("%d could not be converted: look for \"# %s\" in the comments", total.Refused, conversion.Refused)
	case lacks:
		return fmt.Errorf("%d could not be carried over: look for \"# %s\" in the comments", total.Lost, conversion.Lost)
	case total.Quotas == 0:
		return errors.New("nothing to convert: expected a ClusterResourceQuota of OpenShift, an " +
			"ApplicationAwareClusterResourceQuota of KubeVirt, a HierarchicalResourceQuota of HNC, or a Tenant, ResourcePool " +
			"or GlobalResourceQuota of Capsule with a quota")
	}
	return nil
}

// printOutcomes prints the quotas, unless only the comments are wanted.
func printOutcomes(env *environment, outcomes []conversion.Outcome, output string, commentsOnly bool) error {
	write := conversion.YAML
	if output == "json" {
		write = conversion.JSON
	}
	if output == "json" || commentsOnly {
		if _, err := env.streams.ErrOut.Write(conversion.Comments(outcomes)); err != nil {
			return fmt.Errorf("writing the comments: %w", err)
		}
	}
	if commentsOnly {
		return nil
	}
	text, err := write(outcomes)
	if err != nil {
		return fmt.Errorf("writing the quotas: %w", err)
	}
	if _, err := env.streams.Out.Write(text); err != nil {
		return fmt.Errorf("writing the quotas: %w", err)
	}
	return nil
}

// readObjects reads the files in the order in which they are named, and those of
// a directory in that of their names.
func readObjects(in io.Reader, options convertOptions) ([]conversion.Object, error) {
	var objects []conversion.Object
	for _, named := range options.files {
		files, err := filesOf(named, options.recursive)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			read, err := readFile(in, file)
			if err != nil {
				return nil, err
			}
			objects = append(objects, read...)
		}
	}
	return objects, nil
}

func readFile(in io.Reader, file string) ([]conversion.Object, error) {
	if file == stdin {
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		return conversion.Read("standard input", content)
	}
	content, err := os.ReadFile(file) //nolint:gosec // whoever runs it names the file
	if err != nil {
		return nil, fmt.Errorf("reading the manifests: %w", err)
	}
	return conversion.Read(file, content)
}

// filesOf returns the file, or the manifests in a directory.
func filesOf(named string, recursive bool) ([]string, error) {
	switch {
	case named == stdin:
		return []string{stdin}, nil
	case strings.Contains(named, "://"):
		return nil, fmt.Errorf("%s: files are read, not addresses: download it first", named)
	}
	var files []string
	err := filepath.WalkDir(named, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path != named && entry.IsDir() && !recursive:
			return filepath.SkipDir
		case !entry.IsDir() && isManifest(path, named):
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("looking for manifests: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no file that ends in .yaml, .yml or .json", named)
	}
	return files, nil
}

// isManifest is true for a file that is named itself, whatever its name.
func isManifest(path, named string) bool {
	return path == named || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
}
