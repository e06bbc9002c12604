// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/sharedquota/shared-quota-operator/internal/apiserver"
	"github.com/sharedquota/shared-quota-operator/internal/webhookconfig"
)

// alwaysHeard costs as much as a contact, however long the benchmark takes.
type alwaysHeard struct{ *apiserver.Contact }

func (c alwaysHeard) Await(ctx context.Context) error {
	_ = c.Contact.Await(ctx)
	return nil
}

// typicalPod is a pod as the API server sends it, with the fields that it fills in.
const typicalPod = `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-6d4b75cb6d-hx8wz","generateName":"web-6d4b75cb6d-",
"namespace":"shop","uid":"e2a1ad51-59d1-4a1f-8f52-1f4d6b1f7a10","creationTimestamp":"2026-01-01T00:00:00Z","generation":1,
"labels":{"app":"web","pod-template-hash":"6d4b75cb6d"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet",
"name":"web-6d4b75cb6d","uid":"0c9ee7a7-6a3d-4b3c-9a70-9a2a2d6f7f11","controller":true,"blockOwnerDeletion":true}],
"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1","time":"2026-01-01T00:00:00Z",
"fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},
"f:ownerReferences":{".":{},"k:{\"uid\":\"0c9ee7a7-6a3d-4b3c-9a70-9a2a2d6f7f11\"}":{}}},"f:spec":{"f:containers":{"k:{\"name\":\"main\"}":
{".":{},"f:env":{".":{},"k:{\"name\":\"MODE\"}":{".":{},"f:name":{},"f:value":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},
"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},
"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:enableServiceLinks":{},"f:restartPolicy":{},
"f:schedulerName":{},"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}}]},"spec":{"volumes":[{"name":"kube-api-access-5jz2q",
"projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":{"name":"kube-root-ca.crt",
"items":[{"key":"ca.crt","path":"ca.crt"}]}},{"downwardAPI":{"items":[{"path":"namespace","fieldRef":{"apiVersion":"v1",
"fieldPath":"metadata.namespace"}}]}}],"defaultMode":420}}],"containers":[{"name":"main","image":"example.com/web:1",
"env":[{"name":"MODE","value":"production"}],"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"250m","memory":"256Mi"}},
"volumeMounts":[{"name":"kube-api-access-5jz2q","readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],
"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],
"restartPolicy":"Always","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default",
"serviceAccount":"default","securityContext":{},"schedulerName":"default-scheduler","tolerations":[{"key":"node.kubernetes.io/not-ready",
"operator":"Exists","effect":"NoExecute","tolerationSeconds":300},{"key":"node.kubernetes.io/unreachable","operator":"Exists",
"effect":"NoExecute","tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":"PreemptLowerPriority"},
"status":{"phase":"Pending","qosClass":"Burstable"}}`

// BenchmarkEndpoint is all that a pod's admission costs but the reservation and
// its write, which internal/ledger and internal/machine measure.
func BenchmarkEndpoint(b *testing.B) {
	served := newServed(b.Context(), b, quotaOf("team", "pods", "1M", "requests.cpu", "1M", "requests.memory", "1Pi"))
	served.wait()
	served.handler.Contact = alwaysHeard{apiserver.NewContact(clock.RealClock{}, "replica-1")}
	endpoint := NewEndpoint(served.handler)
	question := webhookconfig.Question{
		Witness: webhookconfig.WitnessExact, Quotas: webhookconfig.QuotaSet([]types.UID{"uid of team"}), Epoch: 999, Specs: "0123456789abcdef",
	}
	path := Path + "/" + question.Path() + "?timeout=10s"
	review := reviewOf(b, dryRun(but(creation(), func(request *admissionv1.AdmissionRequest) { request.Object = raw(typicalPod) })))
	b.ReportAllocs()
	for b.Loop() {
		request := httptest.NewRequest(http.MethodPost, path, strings.NewReader(review))
		request.Header.Set("Content-Type", "application/json")
		response := httptest.NewRecorder()
		endpoint.ServeHTTP(response, request)
		if !strings.Contains(response.Body.String(), `"allowed":true`) {
			b.Fatal(response.Body.String())
		}
	}
}
