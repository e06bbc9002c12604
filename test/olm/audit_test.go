// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// auditPolicy has the API server write down what a user asks, and the answers.
func auditPolicy(user string) []byte {
	policy, err := json.Marshal(auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived},
		Rules:      []auditv1.PolicyRule{{Level: auditv1.LevelMetadata, Users: []string{user}}, {Level: auditv1.LevelNone}},
	})
	Expect(err).NotTo(HaveOccurred())
	return policy
}

// audited are all requests that the operator made so far, and the answers.
func audited() []auditv1.Event {
	text, err := os.ReadFile(auditLog)
	Expect(err).NotTo(HaveOccurred())
	var events []auditv1.Event
	for line := range bytes.Lines(text) {
		var event auditv1.Event
		Expect(json.Unmarshal(line, &event)).To(Succeed(), string(line))
		events = append(events, event)
	}
	return events
}

// forbidden are the requests that the API server answered with 403.
func forbidden(events []auditv1.Event) []string {
	var requests []string
	for i := range events {
		if status := events[i].ResponseStatus; status != nil && status.Code == http.StatusForbidden {
			requests = append(requests, fmt.Sprintf("%s %s: %s", events[i].Verb, events[i].RequestURI, status.Message))
		}
	}
	return requests
}
