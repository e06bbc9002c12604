// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// audited are all requests that the operator in a namespace made since, and the answers.
func audited(namespace string, since time.Time) []auditv1.Event {
	GinkgoHelper()
	text, err := os.ReadFile(auditLog)
	Expect(err).NotTo(HaveOccurred())
	var events []auditv1.Event
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the rest is still being written
		}
		var event auditv1.Event
		Expect(json.Unmarshal(line, &event)).To(Succeed(), string(line))
		if event.User.Username == "system:serviceaccount:"+namespace+":"+suite.ServiceAccount && event.StageTimestamp.After(since) {
			events = append(events, event)
		}
	}
	return events
}

// forbidden are the requests that the API server answered with 403.
func forbidden(events []auditv1.Event) []string {
	var requests []string
	for i := range events {
		if status := events[i].ResponseStatus; status != nil && status.Code == http.StatusForbidden {
			requests = append(requests, events[i].Verb+" "+events[i].RequestURI+": "+status.Message)
		}
	}
	return requests
}
