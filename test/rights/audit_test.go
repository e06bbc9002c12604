// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// policy has the API server write down each request of the operator: who asked for
// what, and whether they might. Watches are told of when they begin.
const policy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Metadata
  users: [` + suite.User + `]
- level: None
`

// audit is where the API server keeps its audit log.
type audit struct{ log string }

// newAudit prepares an audit in dir, and returns the flags for kube-apiserver.
func newAudit(dir string) (audit, map[string]string, error) {
	path, result := filepath.Join(dir, "policy.yaml"), audit{log: filepath.Join(dir, "audit.log")}
	flags := map[string]string{"audit-policy-file": path, "audit-log-path": result.log}
	return result, flags, os.WriteFile(path, []byte(policy), 0o600)
}

// request is what the operator asked for.
type request struct {
	group, resource, verb string
	namespace, name       string
	allowed               bool
}

func (r request) String() string {
	return fmt.Sprintf("%s %s.%s %s/%s", r.verb, r.resource, r.group, r.namespace, r.name)
}

// requests returns all requests for resources so far.
func (a audit) requests() ([]request, error) {
	file, err := os.Open(a.log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var requests []request
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil // what follows the last line's end is still being written
		}
		if err != nil {
			return nil, err
		}
		var event auditv1.Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("reading %q: %w", line, err)
		}
		if event.ObjectRef != nil {
			requests = append(requests, requestOf(&event))
		}
	}
}

func requestOf(event *auditv1.Event) request {
	object := event.ObjectRef
	resource := object.Resource
	if object.Subresource != "" {
		resource += "/" + object.Subresource
	}
	return request{
		group: object.APIGroup, resource: resource, verb: event.Verb, namespace: object.Namespace, name: object.Name,
		allowed: event.Annotations["authorization.k8s.io/decision"] == "allow",
	}
}
