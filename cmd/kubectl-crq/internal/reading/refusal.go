// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
)

// Reasons of refusals besides those of events.
const (
	// NotCovered: the object consumes a resource that is limited by default, and no quota covers it.
	NotCovered = "NotCovered"
	// RefusedElsewhere: no quota refused it.
	RefusedElsewhere = "RefusedElsewhere"
)

// Words are the parts of a refused request's message.
type Words struct {
	// Reason is one of QuotaExceeded, RequestIncomplete, UsageUnknown and TooMuchInDoubt, as of events, or one
	// of those above.
	Reason string
	// Quota is the name of a ClusterResourceQuota or of a ResourceQuota: both refuse in the same words. It is
	// empty if no quota refused.
	Quota string
	// Requested, Used and Limited are those of an exceeded quota. If the namespace holds too much in doubt, Used is the
	// amount that it holds so, and Limited the amount that it may.
	Requested, Used, Limited corev1.ResourceList
	// Surge is that of the quota for the exceeded resources, if the object replaces another one, and the surge is taken.
	Surge corev1.ResourceList
	// Missing is the list of fields that the request must have, as in "requests.cpu for: main".
	Missing string
	// Text is the message without the words of components that pass it on.
	Text string
}

// Refused by a quota: how the message begins.
const (
	exceededWords   = "exceeded quota: "
	incompleteWords = "failed quota: "
	doubtWords      = "too much in doubt for quota: "
	unknownWords    = "status unknown for quota: "
	uncoveredWords  = "insufficient quota to consume: "
	unscopedWords   = "insufficient quota to match these scopes: "
	mustSpecify     = ": must specify "
)

// ParseRefusal reads the message of a refused request, also inside the message of an event or a condition.
func ParseRefusal(message string) Words {
	for _, known := range []struct {
		begin string
		parse func(rest string) (Words, bool)
	}{
		{exceededWords, parseExceeded}, {incompleteWords, parseIncomplete}, {doubtWords, parseDoubt}, {unknownWords, parseUnknown},
		{uncoveredWords, parseUncovered}, {unscopedWords, parseUncovered},
	} {
		at := strings.Index(message, known.begin)
		if at < 0 {
			continue
		}
		words, ok := known.parse(message[at+len(known.begin):])
		if !ok {
			continue
		}
		if words.Text == "" {
			words.Text = strings.TrimSpace(message[at:])
		}
		return words
	}
	return Words{Reason: RefusedElsewhere, Text: plainText(message)}
}

func parseUncovered(string) (Words, bool) { return Words{Reason: NotCovered}, true }

func parseExceeded(rest string) (Words, bool) {
	words := Words{Reason: quotav1.ReasonQuotaExceeded}
	if words.amounts(exceededWords, rest, requestedWords, usedWords, ", limited: ") {
		if _, taken, found := strings.Cut(rest, surgeWords); found {
			taken, _, _ = strings.Cut(taken, ":")
			words.Surge, _ = cutAmounts(taken)
		}
		return words, true
	}
	return parseCutOff(rest)
}

const requestedWords, usedWords = ", requested: ", ", used: "

// surgeWords are before the surge in outcomes.SurgeTaken.
const surgeWords = " (this replaces another pod, and doesn't fit in the surge for that either, which is "

// parseCutOff reads the rest of a message that was too long for an event: the quota's name, and the requested amounts
// if the list is whole.
func parseCutOff(rest string) (Words, bool) {
	name, list, found := strings.Cut(rest, requestedWords)
	if !found || !isName(name) {
		return Words{}, false
	}
	words := Words{Reason: quotav1.ReasonQuotaExceeded, Quota: name}
	if requested, after := cutAmounts(list); strings.HasPrefix(after, usedWords) && len(requested) > 0 {
		words.Requested = requested
	}
	return words, true
}

func parseDoubt(rest string) (Words, bool) {
	words := Words{Reason: quotav1.ReasonTooMuchInDoubt}
	ok := words.amounts(doubtWords, rest, ", requested: ", ", held for missing objects: ", ", allowed for missing objects: ")
	return words, ok
}

// amounts reads the quota's name and three lists, each after one of the words, and cuts the text after them.
func (w *Words) amounts(begin, rest string, before ...string) bool {
	whole := rest
	name, rest, found := strings.Cut(rest, before[0])
	if !found || !isName(name) {
		return false
	}
	w.Quota = name
	for i, into := range []*corev1.ResourceList{&w.Requested, &w.Used, &w.Limited} {
		if i > 0 {
			if rest, found = strings.CutPrefix(rest, before[i]); !found {
				return false
			}
		}
		*into, rest = cutAmounts(rest)
		if len(*into) == 0 {
			return false
		}
	}
	w.Text = begin + whole[:len(whole)-len(rest)]
	return true
}

// cutAmounts reads amounts, as in "pods=1,requests.cpu=250m", and returns the text after them.
func cutAmounts(text string) (amounts corev1.ResourceList, after string) {
	amounts = corev1.ResourceList{}
	for {
		name, rest, found := strings.Cut(text, "=")
		if !found || name == "" || strings.ContainsAny(name, ", ;()") {
			return amounts, text
		}
		end := strings.IndexAny(rest, ", ;()")
		if end < 0 {
			end = len(rest)
		}
		quantity, err := resource.ParseQuantity(rest[:end])
		if err != nil {
			return amounts, text
		}
		amounts[corev1.ResourceName(name)] = quantity
		text = rest[end:]
		if len(text) < 2 || text[0] != ',' || text[1] == ' ' {
			return amounts, text
		}
		text = text[1:]
	}
}

func parseIncomplete(rest string) (Words, bool) {
	name, missing, found := strings.Cut(rest, mustSpecify)
	if !found || !isName(name) {
		return Words{}, false
	}
	if at := strings.Index(missing, afterIncomplete); at >= 0 {
		missing = missing[:at]
	}
	missing = strings.TrimSpace(missing)
	return Words{
		Reason: quotav1.ReasonRequestIncomplete, Quota: name, Missing: missing,
		Text: incompleteWords + name + mustSpecify + missing,
	}, true
}

// afterIncomplete begins the advice in the event of a view.
const afterIncomplete = "; state it in the object"

func parseUnknown(rest string) (Words, bool) {
	name, _, found := strings.Cut(rest, ", resources: ")
	return Words{Reason: quotav1.ReasonUsageUnknown, Quota: name}, found && isName(name)
}

// isName reports whether a text may be the name of a quota.
func isName(text string) bool { return text != "" && !strings.ContainsAny(text, " ,:;=\"") }

// plainText cuts the words of controllers. The words of admission name the component that refused.
func plainText(message string) string {
	message = strings.TrimSpace(message)
	for _, before := range []string{"(combined from similar events): ", "Error creating: ", "Error creating job: "} {
		message = strings.TrimPrefix(message, before)
	}
	// As in "create Pod web-0 in StatefulSet web failed error: …".
	if _, after, found := strings.Cut(message, " failed error: "); found {
		message = after
	}
	return message
}
