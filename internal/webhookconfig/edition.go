// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// ProbeWebhook is the entry that proves which configuration the API server has
	// loaded.
	ProbeWebhook = "probe.quota.sharedquota.dev"
	// ProbeLabel is on the QuotaLedgers that probes create as a dry run. No ledger has
	// it, so that writes of ledgers don't meet the entry.
	ProbeLabel = "quota.sharedquota.dev/probe"

	// ProbeTimeout is how long the API server waits for the answer to a probe.
	ProbeTimeout = 5 * time.Second
)

// Edition identifies one write of the webhook configuration. The path of the
// entry ProbeWebhook has it, so the requests that arrive there show the
// configuration that the API server has loaded.
type Edition struct {
	// Generation is the metadata.generation that the configuration has by this
	// write. If it has another one, another client has written it since.
	Generation int64
	// Mark is different for each write: 16 hexadecimal digits. Equal
	// configurations have different marks, because a configuration that came
	// between may still be loaded.
	Mark string
}

// Path returns the edition as one segment of a path, which is a DNS subdomain.
func (e Edition) Path() string { return strconv.FormatInt(e.Generation, 10) + "-" + e.Mark }

var errEdition = errors.New("want GENERATION-MARK")

// ParseEdition parses a path that Path returned, and nothing else.
func ParseEdition(path string) (Edition, error) {
	number, mark, _ := strings.Cut(path, "-")
	generation, err := strconv.ParseInt(number, 10, 64)
	edition := Edition{Generation: generation, Mark: mark}
	if err != nil || generation <= 0 || !isDigest(mark) || edition.Path() != path {
		return Edition{}, fmt.Errorf("reading the edition %q: %w", path, errEdition)
	}
	return edition, nil
}

// warningPrefix begins the answer to a probe.
const warningPrefix = "the API server has loaded the webhook configuration "

// Warning is the answer to a probe that met the edition.
func (e Edition) Warning() string { return warningPrefix + e.Path() }

// EditionOf returns the edition in a warning. It is false for the warnings of
// others.
func EditionOf(warning string) (Edition, bool) {
	path, found := strings.CutPrefix(warning, warningPrefix)
	if !found {
		return Edition{}, false
	}
	edition, err := ParseEdition(path)
	return edition, err == nil
}

// Edition returns which edition a configuration in the cluster is. It is false if
// another client has written it since.
func (s Settings) Edition(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) (Edition, bool) {
	for _, webhook := range configuration.Webhooks {
		if webhook.Name != ProbeWebhook {
			continue
		}
		_, path, _ := strings.Cut(pathOf(webhook.ClientConfig), s.Paths.Probe+"/")
		edition, err := ParseEdition(path)
		return edition, err == nil && edition.Generation == configuration.Generation
	}
	return Edition{}, false
}

// NextEdition returns the edition of the write that replaces a configuration; without
// one, it has no generation.
func NextEdition(replaced *admissionregistrationv1.ValidatingWebhookConfiguration) Edition {
	mark := make([]byte, digestLength)
	_, _ = rand.Read(mark) // it never fails
	return Edition{Generation: replaced.Generation + 1, Mark: hex.EncodeToString(mark)}
}

// Probe returns the entry that proves that the edition is loaded.
func (s Settings) Probe(edition Edition) admissionregistrationv1.ValidatingWebhook {
	rules := ownRules(operations{onCreate}, "quotaledgers")
	webhook := s.webhook(ProbeWebhook, s.Paths.Probe+"/"+edition.Path(), metav1.LabelSelector{}, rules)
	webhook.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{ProbeLabel: "true"}}
	webhook.SideEffects = ptr.To(admissionregistrationv1.SideEffectClassNone)
	webhook.TimeoutSeconds = seconds(ProbeTimeout)
	// A call that fails must come back as an error, also if quotas fail open.
	webhook.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	return webhook
}

// EditOf names the client that edited or deleted the configuration after the manager own had written it.
func EditOf(current *admissionregistrationv1.ValidatingWebhookConfiguration, own string) string {
	if current.ResourceVersion == "" {
		return "somebody deleted the webhook configuration " + ConfigurationName
	}
	by := cmp.Or(editor(current, own), "somebody whom the API server doesn't name")
	return by + " edited the webhook configuration " + ConfigurationName
}

// editor returns the field manager that wrote any of the entries last, quoted. It is empty if that is own, as after an edit that only
// removed something: the API server knows no manager of that.
func editor(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, own string) string {
	last, at := "", metav1.Time{}
	for _, by := range configuration.ManagedFields {
		if by.FieldsV1 == nil || by.Time == nil || !bytes.Contains(by.FieldsV1.GetRawBytes(), []byte(`"f:webhooks"`)) {
			continue
		}
		name := ""
		if by.Manager != own {
			name = strconv.Quote(by.Manager)
		}
		if at.Before(by.Time) || at.Equal(by.Time) && last == "" { // times are whole seconds
			last, at = name, *by.Time
		}
	}
	return last
}
