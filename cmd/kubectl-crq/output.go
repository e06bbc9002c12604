// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

const (
	formatTable = ""
	formatWide  = "wide"
	formatName  = "name"
)

// output is the flag -o: a table, or objects in the formats of kubectl get.
type output struct {
	flags *genericclioptions.PrintFlags
	// without are formats that the command can't print: wide if there are no more
	// columns, name if the answer has none in the API.
	without []string
}

// newOutput adds the flag to a command, which checks it before it runs.
func newOutput(cmd *cobra.Command, without ...string) *output {
	o := &output{flags: genericclioptions.NewPrintFlags(""), without: without}
	o.flags.AddFlags(cmd)
	cmd.PreRunE = func(*cobra.Command, []string) error { return o.check() }
	cmd.Flag("output").Usage = "Output format. One of: (" + strings.Join(o.allowed(), ", ") + ")."
	return o
}

func (o *output) allowed() []string {
	return slices.DeleteFunc(append([]string{formatWide}, o.flags.AllowedFormats()...), func(format string) bool {
		return slices.Contains(o.without, format)
	})
}

// asTable reports whether a table is wanted, and a wide one.
func (o *output) asTable() (table, wide bool) {
	format := *o.flags.OutputFormat
	templated := *o.flags.TemplatePrinterFlags.TemplateArgument != ""
	return (format == formatTable && !templated) || format == formatWide, format == formatWide
}

// check returns an error for an invalid format, before anything is read.
func (o *output) check() error {
	format := *o.flags.OutputFormat
	if slices.Contains(o.without, format) {
		return o.unknown(format)
	}
	if table, _ := o.asTable(); table {
		return nil
	}
	_, err := o.flags.ToPrinter()
	switch {
	case genericclioptions.IsNoCompatiblePrinterError(err):
		return o.unknown(format)
	case err != nil:
		return fmt.Errorf("reading the output format: %w", err)
	}
	return nil
}

func (o *output) unknown(format string) error {
	return outcomes.UnknownFormat.Err(format, strings.Join(o.allowed(), ", "))
}

// print writes objects of our types, or of Kubernetes' own, in the format that is
// asked for. A list is printed as one object, but for its items' names.
func (o *output) print(e *environment, object runtime.Object) error {
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	printer, err := o.flags.WithTypeSetter(scheme).ToPrinter()
	if err != nil {
		return fmt.Errorf("reading the output format: %w", err)
	}
	objects := []runtime.Object{object}
	if *o.flags.OutputFormat == formatName && meta.IsListType(object) {
		if objects, err = meta.ExtractList(object); err != nil {
			return fmt.Errorf("listing what to print: %w", err)
		}
	}
	for _, object := range objects {
		if err := printer.PrintObj(object, e.streams.Out); err != nil {
			return fmt.Errorf("printing: %w", err)
		}
	}
	return nil
}

// answer prints an answer that no API server serves: as a text, or as an object of a kind.
func (o *output) answer(
	e *environment, object interface{ GetObjectKind() schema.ObjectKind }, kind string, text func(wide bool, style render.Style) string,
) error {
	if table, wide := o.asTable(); table {
		return e.print(text(wide, e.style()))
	}
	object.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(render.APIVersion, kind))
	render.MakeVisible(object)
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	return o.print(e, &unstructured.Unstructured{Object: content})
}
