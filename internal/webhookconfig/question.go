// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// Witness is how much an entry of the webhook configuration shows of the quotas
// that cover the namespaces that meet it.
type Witness string

const (
	// WitnessNone: the entry may ask about a namespace that no quota covers.
	WitnessNone Witness = "any"
	// WitnessSome: at least one quota covers every namespace that meets the entry.
	WitnessSome Witness = "some"
	// WitnessExact: the same quotas, and no others, cover every namespace that meets
	// the entry. Question.Quotas identifies them.
	WitnessExact Witness = "exact"
)

// Question is the part of an entry's path that describes the quotas that it was
// generated from. The API server repeats it with each request, so that a replica
// that knows less than the configuration notices.
type Question struct {
	Witness Witness
	// Quotas is a QuotaSet with WitnessExact, and empty otherwise.
	Quotas string
	// Epoch is the newest resourceVersion among the specs that the entry was
	// generated from. A replica that has seen it knows all these specs.
	Epoch uint64
	// Specs is a digest of these specs' versions. While it is the same, the Epoch
	// stays as it is.
	Specs string
	// Admits: the API server lets a request pass if it gets no answer. So must the webhook if it can't decide.
	Admits bool
}

// IsWitness reports whether the entry says something of the quotas that cover the
// namespaces that meet it.
func (q Question) IsWitness() bool { return q.Witness == WitnessSome || q.Witness == WitnessExact }

// QuotaSet returns a digest of the UIDs, which doesn't depend on their order.
func QuotaSet(uids []types.UID) string {
	return digestOf(slices.Sorted(slices.Values(uids)))
}

// digestLength is how many bytes a digest has.
const digestLength = 8

// digestOf returns a digest of the parts, none of which has a newline in it: 16
// hexadecimal digits.
func digestOf[T ~string](parts []T) string {
	sum := sha256.New()
	for _, part := range parts {
		_, _ = sum.Write([]byte(part + "\n")) // a hash never fails
	}
	return hex.EncodeToString(sum.Sum(nil)[:digestLength])
}

// isDigest reports whether digestOf may have returned the text.
func isDigest(text string) bool {
	bytes, err := hex.DecodeString(text)
	return err == nil && len(bytes) == digestLength && strings.ToLower(text) == text
}

// Path returns the question as two segments of a path, without a slash in front.
// Each is a DNS subdomain, which the API server demands of a Service's path.
func (q Question) Path() string {
	entry := string(q.Witness)
	if q.Quotas != "" {
		entry += "-" + q.Quotas
	}
	specs := strconv.FormatUint(q.Epoch, 10) + "-" + q.Specs
	if q.Admits {
		specs += "-" + admits
	}
	return entry + "/" + specs
}

// admits ends the path of an entry that lets requests pass without an answer.
const admits = "admit"

var errQuestion = errors.New("want WITNESS[-QUOTAS]/EPOCH-SPECS[-admit]")

// ParseQuestion parses a path that Path returned, and nothing else.
func ParseQuestion(path string) (Question, error) {
	entry, specs, _ := strings.Cut(path, "/")
	witness, quotas, _ := strings.Cut(entry, "-")
	number, rest, _ := strings.Cut(specs, "-")
	digest, last, _ := strings.Cut(rest, "-")
	epoch, err := strconv.ParseUint(number, 10, 64)
	question := Question{Witness: Witness(witness), Quotas: quotas, Epoch: epoch, Specs: digest, Admits: last == admits}
	if err != nil || !question.isValid() || question.Path() != path {
		return Question{}, fmt.Errorf("reading the question %q: %w", path, errQuestion)
	}
	return question, nil
}

func (q Question) isValid() bool {
	switch q.Witness {
	case WitnessNone, WitnessSome:
		return q.Quotas == "" && isDigest(q.Specs)
	case WitnessExact:
		return isDigest(q.Quotas) && isDigest(q.Specs)
	default:
		return false
	}
}
