// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// families are metrics, by their names.
type families map[string]*dto.MetricFamily

// scrape reads the metrics of an operator that serves them at this port.
func scrape(ctx context.Context, port int) (families, error) {
	text, err := get(ctx, fmt.Sprintf("http://127.0.0.1:%d/metrics", port))
	if err != nil {
		return nil, fmt.Errorf("reading the operator's metrics: %w", err)
	}
	return parseMetrics(text)
}

func parseMetrics(text []byte) (families, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return parsed, nil
}

// sum adds up a family's series, or those whose labels are wanted; of a histogram, what was observed.
func (f families) sum(name string, wanted ...func(labels map[string]string) bool) float64 {
	total := 0.0
	for _, metric := range f[name].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if len(wanted) == 0 || wanted[0](labels) {
			total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetHistogram().GetSampleSum()
		}
	}
	return total
}

// get reads a page of an operator, which must not compress it: the compressor's buffers made the heap that is measured 1.7 MB
// larger.
func get(ctx context.Context, url string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept-Encoding", "identity")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", response.Status, body)
	}
	return body, err
}
