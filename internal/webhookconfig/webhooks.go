// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/sharedquota/shared-quota-operator/internal/definition"
)

const (
	// ConfigurationName is the name of the ValidatingWebhookConfiguration.
	ConfigurationName = "shared-quota"
	// WideAnnotation is on a configuration that asks in namespaces that no quota
	// selects, and says why.
	WideAnnotation = "quota.sharedquota.dev/wide"
	// ObjectsWebhook is the entry that enforces quotas. If there are several, the
	// others have a number in their names.
	ObjectsWebhook = "objects.quota.sharedquota.dev"
	// WorkloadsWebhook is the entry that is asked whether the pods of workloads fit. If there are several, the others
	// have a number in their names.
	WorkloadsWebhook = "workloads.quota.sharedquota.dev"
	// QuotasWebhook is the entry that validates ClusterResourceQuotas.
	QuotasWebhook = "quotas.quota.sharedquota.dev"

	// Timeout is how long the API server waits for an answer. It is long enough
	// for a ledger's write on a slow store, and no longer than needed, because during an
	// outage each request that waits occupies a worker of the controller that sent it:
	// with 30 seconds, the ReplicaSets and Jobs of the whole cluster stood still. A
	// request that is given up comes to its client as an error of the server.
	Timeout = 10 * time.Second
	// AnswerMargin is the end of the API server's timeout that is kept free to
	// answer in.
	AnswerMargin = 500 * time.Millisecond
	// PreflightTimeout is how long the API server waits for an answer about a workload. Without one,
	// the workload is stored.
	PreflightTimeout = 2 * time.Second

	// maxEntries bounds the entries that enforce: at each request, the API server
	// looks through all of them.
	maxEntries = 50
	// maxBytes bounds the entries that enforce, and those for workloads likewise, as JSON. The API server takes 3 MiB,
	// and etcd 1.5. The configuration stays below 1 MiB with these, the other entries, and the parts that aren't
	// generated: managed fields and others' annotations.
	maxBytes = 448 << 10
	// narrow is the size of a selector that isn't worth widening.
	narrow = 512
)

// Endpoint is where the API server reaches the webhook.
type Endpoint struct {
	// URL is the base of all endpoints, without a path. Empty for a Service.
	URL string
	// Service is the namespace and name of the Service, where there is no URL.
	Namespace, Name string
	// CABundle verifies the server's certificate, in PEM.
	CABundle []byte
}

func (e Endpoint) clientConfig(path string) admissionregistrationv1.WebhookClientConfig {
	if e.URL != "" {
		return admissionregistrationv1.WebhookClientConfig{URL: ptr.To(e.URL + path), CABundle: e.CABundle}
	}
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{
			Namespace: e.Namespace, Name: e.Name, Path: ptr.To(path), Port: ptr.To[int32](443),
		},
		CABundle: e.CABundle,
	}
}

// Paths are the paths of the endpoints. The questions follow that of Objects, and
// the editions that of Probe, each after a slash.
type Paths struct{ Objects, Workloads, Quotas, Probe string }

// Settings are the settings that all quotas share.
type Settings struct {
	Endpoint Endpoint
	// Token begins all paths. TokenSince is since when the API server is told so.
	Token      Token
	TokenSince time.Time
	// Retired are the tokens before it, and until when they are accepted.
	Retired map[Token]time.Time
	Paths   Paths
	// Protected are the names of the namespaces that are never asked about.
	Protected []string
	// Everywhere are the resources that are asked about in all other namespaces,
	// independently of quotas' selectors.
	Everywhere []schema.GroupResource
	// FailurePolicy is the API server's action when it gets no answer about quotas, or about Everywhere. Each entry
	// that enforces has that of its quotas.
	FailurePolicy admissionregistrationv1.FailurePolicyType
}

// Quota is one quota's demand on the configuration.
type Quota struct {
	Name       string
	UID        types.UID
	Generation int64
	// Version is a resourceVersion of the quota with the spec of this Generation, the
	// oldest that is known.
	Version  uint64
	Selector definition.Selector
	// Limited are the resources that the quota limits.
	Limited []schema.GroupResource
	// Admits: requests are admitted while they can't be decided.
	Admits bool
	// Preflight: it is asked whether workloads fit.
	Preflight bool
}

// AdmitsByDefault reports whether requests are admitted while they can't be decided, if their quotas don't say
// otherwise.
func (s Settings) AdmitsByDefault() bool { return s.FailurePolicy == admissionregistrationv1.Ignore }

// Webhooks returns the entries that ask about exactly the quotas' limits, in the namespaces that they select: a
// request meets one entry, or none. If that takes more than maxEntries or maxBytes, entries ask about more than that,
// see definition.Disjoint, and exact is false once they do so in namespaces that no quota selects. With nothing
// limited, no object is asked about. The path of each entry has its Question.
//
// The entries for workloads ask in the same namespaces, as far as quotas want it. They keep no quota:
// exact says nothing of them.
func (s Settings) Webhooks(quotas []Quota) (webhooks []admissionregistrationv1.ValidatingWebhook, exact bool) {
	rules := ownRules(operations{onCreate, onUpdate}, "clusterresourcequotas")
	validating := s.webhook(QuotasWebhook, s.Paths.Quotas, metav1.LabelSelector{}, rules)
	validating.MatchConditions = quotaConditions()
	webhooks = append(webhooks, validating)
	entries, exact := s.entries(quotas)
	for i, entry := range entries {
		webhooks = append(webhooks, s.objectsWebhook(
			numbered(ObjectsWebhook, i), entry.question, entry.Selector, objectRules(parseAll(entry.Rules))))
	}
	return append(webhooks, s.workloadsWebhooks(quotas)...), exact
}

// workloads stands for the rules of the entries for workloads, which are the same for all quotas. So
// quotas whose namespaces can be chosen together need one entry.
const workloads = "workloads"

// workloadsWebhooks are the entries that ask whether the pods of workloads fit, in the namespaces
// of the quotas that want to be asked.
func (s Settings) workloadsWebhooks(quotas []Quota) []admissionregistrationv1.ValidatingWebhook {
	var areas []definition.Area
	for _, quota := range quotas {
		if quota.Preflight {
			areas = append(areas, definition.Area{Selector: quota.Selector, Rules: []string{workloads}})
		}
	}
	entries, _ := definition.Disjoint(areas, s.Protected, bounds(s.workloadsWebhook))
	webhooks := make([]admissionregistrationv1.ValidatingWebhook, 0, len(entries))
	for i, entry := range entries {
		webhook := s.workloadsWebhook(entry)
		webhook.Name = numbered(WorkloadsWebhook, i)
		webhooks = append(webhooks, webhook)
	}
	return webhooks
}

func (s Settings) workloadsWebhook(entry definition.Entry) admissionregistrationv1.ValidatingWebhook {
	webhook := s.webhook(WorkloadsWebhook, s.Paths.Workloads, entry.Selector, workloadRules())
	// It keeps no quota, so it must never be in the way.
	webhook.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	webhook.TimeoutSeconds = seconds(PreflightTimeout)
	webhook.MatchConditions = workloadConditions()
	return webhook
}

// bounds are those of entries of which such webhooks are made.
func bounds(made func(definition.Entry) admissionregistrationv1.ValidatingWebhook) definition.Bounds {
	return definition.Bounds{Entries: maxEntries, Narrow: narrow, Bytes: maxBytes, Size: func(entry definition.Entry) int {
		text, err := json.Marshal(made(entry))
		if err != nil {
			return math.MaxInt
		}
		return len(text) + len("-50,")
	}}
}

// longest is as long as a question can be.
var longest = Question{ //nolint:gochecknoglobals // a constant
	Witness: WitnessExact, Quotas: digestOf[string](nil), Epoch: math.MaxUint64, Specs: digestOf[string](nil), Admits: true,
}

// numbered returns the name of one of several entries: the first has no number.
func numbered(name string, i int) string {
	if i == 0 {
		return name
	}
	first, rest, _ := strings.Cut(name, ".")
	return fmt.Sprintf("%s-%d.%s", first, i+1, rest)
}

// entry is an entry that enforces.
type entry struct {
	definition.Entry
	question Question
	// quotas are the quotas that cover all or some of the namespaces that meet
	// the entry.
	quotas []int
}

func (s Settings) entries(quotas []Quota) (entries []entry, exact bool) {
	areas := s.areas(quotas)
	split, exact := definition.Disjoint(areas, s.Protected, bounds(func(part definition.Entry) admissionregistrationv1.ValidatingWebhook {
		return s.objectsWebhook(ObjectsWebhook, longest, part.Selector, objectRules(parseAll(part.Rules)))
	}))
	for _, part := range split {
		// The area after those of the quotas is that of Everywhere.
		members := slices.DeleteFunc(slices.Clone(part.Areas), func(area int) bool { return area == len(quotas) })
		question := questionOf(part, members, quotas, exact)
		question.Admits = !slices.ContainsFunc(part.Areas, func(area int) bool {
			return len(areas[area].Rules) > 0 && !s.admits(quotas, area)
		})
		entries = append(entries, entry{part, question, members})
	}
	return entries, exact
}

// admits reports whether requests that an area asks about are admitted without an answer. The area after those of
// the quotas is that of Everywhere.
func (s Settings) admits(quotas []Quota, area int) bool {
	if area == len(quotas) {
		return s.AdmitsByDefault()
	}
	return quotas[area].Admits
}

// questionOf returns the question of an entry whose members are these quotas. For
// an entry that isn't exact it skips the members' joint coverage, because that is
// too much work to compute.
func questionOf(part definition.Entry, members []int, quotas []Quota, exact bool) Question {
	var uids []types.UID
	var specs []string
	var certain []definition.Selector // they select by nothing but labels
	question := Question{Witness: WitnessNone}
	around := 0
	for _, member := range members {
		quota := quotas[member]
		uids = append(uids, quota.UID)
		specs = append(specs, fmt.Sprintf("%s %d", quota.UID, quota.Generation))
		question.Epoch = max(question.Epoch, quota.Version)
		if quota.Selector.HasAnnotations() {
			continue
		}
		certain = append(certain, quota.Selector)
		if slices.Contains(part.Around, member) {
			around++
		}
	}
	slices.Sort(specs)
	question.Specs = digestOf(specs)
	switch {
	case around == len(members):
		question.Witness, question.Quotas = WitnessExact, QuotaSet(uids)
	case around > 0, exact && part.LiesIn(certain):
		question.Witness = WitnessSome
	}
	return question
}

// areas are the areas that entries must ask about: one for each quota, and that
// of Everywhere. A resource without a rule, because Kubernetes keeps no quota on
// it, adds nothing.
func (s Settings) areas(quotas []Quota) []definition.Area {
	areas := make([]definition.Area, 0, len(quotas)+1)
	for _, quota := range quotas {
		areas = append(areas, definition.Area{Selector: quota.Selector, Rules: ruled(quota.Limited), Owner: string(quota.UID)})
	}
	return append(areas, definition.Area{Selector: definition.Everything(), Rules: ruled(s.Everywhere)})
}

// objectsWebhook is an entry that enforces. A request meets one entry only. So if one quota of the entry refuses while
// requests can't be decided, all requests that meet the entry are refused then.
func (s Settings) objectsWebhook(
	name string, question Question, namespaces metav1.LabelSelector, rules []rule,
) admissionregistrationv1.ValidatingWebhook {
	webhook := s.webhook(name, s.Paths.Objects+"/"+question.Path(), namespaces, rules)
	webhook.MatchConditions = matchConditions(rules)
	webhook.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	if question.Admits {
		webhook.FailurePolicy = ptr.To(admissionregistrationv1.Ignore)
	}
	return webhook
}

func (s Settings) webhook(
	name, path string, namespaces metav1.LabelSelector, rules []rule,
) admissionregistrationv1.ValidatingWebhook {
	return admissionregistrationv1.ValidatingWebhook{
		Name:          name,
		ClientConfig:  s.Endpoint.clientConfig(s.Token.before(path)),
		Rules:         rules,
		FailurePolicy: ptr.To(s.FailurePolicy),
		// Objects written in another version than a rule names are converted.
		MatchPolicy:             ptr.To(admissionregistrationv1.Equivalent),
		NamespaceSelector:       &namespaces,
		ObjectSelector:          &metav1.LabelSelector{},
		SideEffects:             ptr.To(admissionregistrationv1.SideEffectClassNoneOnDryRun),
		TimeoutSeconds:          seconds(Timeout),
		AdmissionReviewVersions: []string{"v1"},
	}
}

// ruled are the names of the resources that there are rules for, sorted, each once.
func ruled(resources []schema.GroupResource) []string {
	var names []string
	for _, resource := range resources {
		if len(objectRules([]schema.GroupResource{resource})) > 0 {
			names = append(names, resource.String())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func parseAll(names []string) []schema.GroupResource {
	resources := make([]schema.GroupResource, 0, len(names))
	for _, name := range names {
		resources = append(resources, schema.ParseGroupResource(name))
	}
	return resources
}

// IsOfObjects reports whether an entry enforces quotas.
func IsOfObjects(webhook admissionregistrationv1.ValidatingWebhook) bool {
	return strings.HasPrefix(webhook.Name, "objects") && strings.HasSuffix(webhook.Name, strings.TrimPrefix(ObjectsWebhook, "objects"))
}

// seconds is how a configuration says how long the API server waits.
func seconds(timeout time.Duration) *int32 { return ptr.To(int32(timeout / time.Second)) } //nolint:gosec // 10 at most
