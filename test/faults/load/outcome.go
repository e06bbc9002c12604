// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/sharedquota/shared-quota-operator/test/suite"
)

// Outcome is how a client's call ended.
type Outcome string

const (
	// Succeeded: the API server did it.
	Succeeded Outcome = "succeeded"
	// Exceeded: 403, the quota is exhausted.
	Exceeded Outcome = "over quota"
	// RefusedLater: refused by another webhook, whatever the operator says.
	RefusedLater Outcome = "refused by another webhook"
	// Withheld: 403, the namespace holds too much for requests that seem to have failed.
	Withheld Outcome = "too much in doubt"
	// Expected: 404 or 409 about the client's own doing.
	Expected Outcome = "404 or 409 as expected"
	// Unknown: 403, the quota is still being counted.
	Unknown Outcome = "status unknown"
	// CallLost: 5xx, the connection to the webhook broke during the call.
	CallLost Outcome = "call of the webhook lost"
	// Unanswered: 5xx, the webhook took too long.
	Unanswered Outcome = "call of the webhook not answered in time"
	// Undecided: the webhook's own answer is that it could not decide in time, or at all.
	Undecided Outcome = "not decided in time"
	// Interrupted: the replica that was asked ended, and said so.
	Interrupted Outcome = "interrupted by the end of the replica"
	// Disconnected: the API server itself couldn't be reached, or ended.
	Disconnected Outcome = "API server away"
	// Failed is everything else, and nothing excuses it but the absence of the
	// API server.
	Failed Outcome = "failed"
)

const (
	webhook = `admission webhook "objects.quota.sharedquota.dev" denied the request: `
	calling = `failed calling webhook "objects.quota.sharedquota.dev": `
)

// numbered is the name of an entry of the webhook that is not the first.
var numbered = regexp.MustCompile(`"objects-\d+\.`)

// outcomeOf tells how a call ended. A 404 or 409 is for the client to know.
func outcomeOf(err error) Outcome {
	if err == nil {
		return Succeeded
	}
	var status apierrors.APIStatus
	text := numbered.ReplaceAllString(err.Error(), `"objects.`)
	switch {
	case !errors.As(err, &status):
		return Disconnected
	case strings.HasPrefix(text, webhook):
		return answered(strings.TrimPrefix(text, webhook))
	case strings.HasPrefix(text, `admission webhook "`+suite.Refusing+`" denied the request`):
		return RefusedLater
	case strings.Contains(text, calling):
		return uncalled(text)
	default:
		return Failed
	}
}

// answered tells what the webhook's own answer is.
func answered(text string) Outcome {
	switch {
	case strings.HasPrefix(text, "exceeded quota: "):
		return Exceeded
	case strings.HasPrefix(text, "too much in doubt for quota: "):
		return Withheld
	case strings.HasPrefix(text, "status unknown for quota: "):
		return Unknown
	case strings.HasPrefix(text, "waiting for ") &&
		(strings.HasSuffix(text, ": context canceled") || strings.HasSuffix(text, ": the operator is stopping")):
		return Interrupted
	case strings.HasPrefix(text, "waiting for "):
		return Undecided
	default:
		return Failed
	}
}

// uncalled tells how the call of a webhook ended that brought no answer.
func uncalled(text string) Outcome {
	switch {
	case brokenConnection(text):
		return CallLost
	case noAnswer(text):
		return Unanswered
	default:
		return Failed
	}
}

// brokenConnection tells whether an error of the API server's HTTP client is
// about the connection, not about an answer, or that there is nobody to connect to.
func brokenConnection(text string) bool {
	if strings.Contains(text, "no endpoints available for service") {
		return true
	}
	for _, sign := range []string{
		"EOF", "connection reset by peer", "connection refused", "broken pipe", "use of closed network connection",
		"server closed idle connection",
	} {
		if strings.HasSuffix(text, sign) {
			return true
		}
	}
	return false
}

// noAnswer tells whether such an error is about one who keeps silent.
func noAnswer(text string) bool {
	for _, sign := range []string{
		"context deadline exceeded", "TLS handshake timeout", "(Client.Timeout exceeded while awaiting headers)",
	} {
		if strings.HasSuffix(text, sign) {
			return true
		}
	}
	return false
}
