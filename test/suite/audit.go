// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

// Audit is the API server's audit log of what the operator asks.
type Audit struct{ log string }

// Request is a request for a resource, with its subresource, such as deployments/status.
type Request struct {
	Group, Resource, Verb string
	Namespace, Name       string
	// Allowed reports whether RBAC allowed it.
	Allowed bool
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s.%s %s/%s", r.Verb, r.Resource, r.Group, r.Namespace, r.Name)
}

// NewAudit returns an audit of these users, and the flags by which kube-apiserver writes it.
// Watches are noted when they begin.
func NewAudit(users ...string) (audit Audit, flags map[string]string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	policy, audit := filepath.Join(dir, "policy.json"), Audit{log: filepath.Join(dir, "audit.log")}
	text, err := json.Marshal(auditv1.Policy{
		TypeMeta:   metav1.TypeMeta{APIVersion: auditv1.SchemeGroupVersion.String(), Kind: "Policy"},
		OmitStages: []auditv1.Stage{auditv1.StageRequestReceived},
		Rules:      []auditv1.PolicyRule{{Level: auditv1.LevelMetadata, Users: users}, {Level: auditv1.LevelNone}},
	})
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(policy, text, 0o600)).To(Succeed())
	return audit, map[string]string{"audit-policy-file": policy, "audit-log-path": audit.log}
}

// Since returns the requests for resources since a moment; all of them since the zero time.
func (a Audit) Since(moment time.Time) []Request {
	GinkgoHelper()
	text, err := os.ReadFile(a.log)
	Expect(err).NotTo(HaveOccurred())
	var requests []Request
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break // the rest is still being written
		}
		var event auditv1.Event
		Expect(json.Unmarshal(line, &event)).To(Succeed(), string(line))
		if event.ObjectRef != nil && event.StageTimestamp.After(moment) {
			requests = append(requests, requestOf(&event))
		}
	}
	return requests
}

// Forbidden returns those that RBAC forbade since a moment. It fails if there are too few requests in all to show
// that nothing else is forbidden.
func (a Audit) Forbidden(moment time.Time) []Request {
	GinkgoHelper()
	requests := a.Since(moment)
	Expect(len(requests)).To(BeNumerically(">", 50), "requests in the audit log")
	return slices.DeleteFunc(requests, func(r Request) bool { return r.Allowed })
}

func requestOf(event *auditv1.Event) Request {
	object := event.ObjectRef
	resource := object.Resource
	if object.Subresource != "" {
		resource += "/" + object.Subresource
	}
	return Request{
		Group: object.APIGroup, Resource: resource, Verb: event.Verb, Namespace: object.Namespace, Name: object.Name,
		Allowed: event.Annotations["authorization.k8s.io/decision"] == "allow",
	}
}
