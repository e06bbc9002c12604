// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookconfig

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// tokenAnnotation is on the configuration, and says since when it has its token.
	tokenAnnotation = "quota.sharedquota.dev/token-since" //nolint:gosec // no credential
	// retiredAnnotation is on the configuration, and has the tokens that it had before, each
	// with an equals sign and until when it is accepted, and with spaces between them.
	retiredAnnotation = "quota.sharedquota.dev/tokens-retired"
	// maxRetired is how many of them stay, the last that were replaced.
	maxRetired = 8
	// tokenLength is how many random bytes a token has.
	tokenLength = 16
	// tokenLife is after how long a token is replaced.
	tokenLife = time.Hour
	// clockSkew is by how much the clock of the leader before may have been ahead.
	clockSkew = 10 * time.Minute
	// exposedLife is how old a token that may have leaked is at least when it is replaced,
	// so that several failures in a row cause one replacement.
	exposedLife = time.Minute
	// TokenOutlives is for how long a token is accepted after it was replaced: until each API
	// server has loaded the next one.
	TokenOutlives = time.Minute
)

// optOut asks the admissions enforcer of AKS to leave the configuration alone. It adds
// requirements to the selectors of all others:
// https://learn.microsoft.com/azure/aks/faq names it as a label or an annotation.
const optOut = "admissions.enforcer/disabled"

// Token begins the path of every entry of the webhook configuration. A caller that has it
// can read the configuration, as API servers can; the roles of tenants don't allow that.
// It is 32 hexadecimal digits, which are a DNS subdomain, as the API server demands of each
// segment of a path. The zero Token is in no path.
type Token string

// NewToken returns a token of 128 random bits.
func NewToken() Token {
	bits := make([]byte, tokenLength)
	_, _ = rand.Read(bits) // it never fails
	return Token(hex.EncodeToString(bits))
}

// WithToken returns the settings with the token by which the API server must call from now
// on, and when it must be replaced. That of the configuration in the cluster stays for an
// hour, or for a minute if it was exposed. Another one is made sooner if the authorities
// change, which they do if the Secret of the certificate is deleted. A token is exposed if a
// call of a webhook fails, because the API server then tells its client the URL. The tokens
// that are replaced are retired.
func (s Settings) WithToken(
	configuration *admissionregistrationv1.ValidatingWebhookConfiguration, exposed bool, now time.Time,
) (with Settings, due time.Time) {
	life := tokenLife
	if exposed {
		life = exposedLife
	}
	current, retired := Tokens(configuration), Retired(configuration)
	since, err := time.Parse(time.RFC3339, configuration.Annotations[tokenAnnotation])
	if len(current) == 1 && err == nil && now.Before(since.Add(life)) && since.Before(now.Add(clockSkew)) && s.trusts(configuration) {
		s.Token, s.TokenSince, s.Retired = current[0], since, retired
		return s, since.Add(life)
	}
	for _, token := range current {
		retired[token] = now.Add(TokenOutlives)
	}
	maps.DeleteFunc(retired, func(_ Token, until time.Time) bool { return !now.Before(until) })
	s.Token, s.TokenSince, s.Retired = NewToken(), now, retired
	return s, now.Add(tokenLife)
}

// Retired returns the tokens by which API servers that are behind may still call,
// and until when, by the leader's clock. A replica that starts learns them from
// that alone. Values that another client wrote there are left out.
func Retired(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) map[Token]time.Time {
	retired := map[Token]time.Time{}
	for field := range strings.FieldsSeq(configuration.Annotations[retiredAnnotation]) {
		token, text, _ := strings.Cut(field, "=")
		if until, err := time.Parse(time.RFC3339, text); err == nil && isToken(token) {
			retired[Token(token)] = until
		}
	}
	return retired
}

// retired returns the text of the annotation, the last first.
func (s Settings) retired() string {
	fields := make([]string, 0, len(s.Retired))
	for _, token := range slices.SortedFunc(maps.Keys(s.Retired), func(a, b Token) int {
		return cmp.Or(s.Retired[b].Compare(s.Retired[a]), strings.Compare(string(a), string(b)))
	}) {
		fields = append(fields, string(token)+"="+s.Retired[token].UTC().Format(time.RFC3339))
	}
	return strings.Join(fields[:min(len(fields), maxRetired)], " ")
}

// trusts reports whether the API server trusts the authorities that it must trust.
func (s Settings) trusts(current *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return bytes.Equal(current.Webhooks[0].ClientConfig.CABundle, s.Endpoint.CABundle)
}

// annotations are all that the operator owns of a configuration's. It leaves others' alone.
func annotations() []string {
	return []string{tokenAnnotation, retiredAnnotation, WideAnnotation, optOut}
}

// Annotate sets the operator's annotations of a configuration; exact is the result of Webhooks.
func (s Settings) Annotate(configuration *admissionregistrationv1.ValidatingWebhookConfiguration, exact bool) {
	for _, key := range annotations() {
		delete(configuration.Annotations, key)
	}
	set := func(key, value string) { metav1.SetMetaDataAnnotation(&configuration.ObjectMeta, key, value) }
	set(optOut, "true")
	if s.Token != "" {
		set(tokenAnnotation, s.TokenSince.UTC().Format(time.RFC3339))
	}
	if retired := s.retired(); retired != "" {
		set(retiredAnnotation, retired)
	}
	if !exact {
		set(WideAnnotation, "the quotas' selectors are too many, too different or too large for an entry each")
	}
}

// Annotated reports whether a configuration has the operator's annotations of another.
func Annotated(current, wanted *admissionregistrationv1.ValidatingWebhookConfiguration) bool {
	return !slices.ContainsFunc(annotations(), func(key string) bool { return current.Annotations[key] != wanted.Annotations[key] })
}

// before returns the path that begins with the token.
func (t Token) before(path string) string {
	if t == "" {
		return path
	}
	return "/" + string(t) + path
}

// CutToken returns the token that a path begins with, and the rest of the path. It is false
// if the path begins with none.
func CutToken(path string) (token Token, rest string, found bool) {
	first, rest, found := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !found || !isToken(first) {
		return "", path, false
	}
	return Token(first), "/" + rest, true
}

func isToken(text string) bool {
	bits, err := hex.DecodeString(text)
	return err == nil && len(bits) == tokenLength && strings.ToLower(text) == text
}

var tokens = regexp.MustCompile(fmt.Sprintf("/[0-9a-f]{%d}/", hex.EncodedLen(tokenLength)))

// WithoutTokens returns a text that people may read, such as an error that names a URL.
func WithoutTokens(text string) string { return tokens.ReplaceAllString(text, "/…/") }

// Tokens returns the tokens by which a configuration has the API server call, each once.
func Tokens(configuration *admissionregistrationv1.ValidatingWebhookConfiguration) []Token {
	var all []Token
	for _, webhook := range configuration.Webhooks {
		if token, found := tokenOf(webhook.ClientConfig); found && !slices.Contains(all, token) {
			all = append(all, token)
		}
	}
	return all
}

// tokenOf returns the token in the path at which an entry is called. A URL may have a path
// of its own before that.
func tokenOf(called admissionregistrationv1.WebhookClientConfig) (Token, bool) {
	path := pathOf(called)
	if called.Service == nil {
		_, path, _ = strings.Cut(ptr.Deref(called.URL, ""), "://")
	}
	for segment := range strings.SplitSeq(path, "/") {
		if isToken(segment) {
			return Token(segment), true
		}
	}
	return "", false
}
