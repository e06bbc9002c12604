// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package outcomes

import (
	"errors"
	"fmt"
	"strings"
)

// Kind is the place where people meet a message.
type Kind string

// The kinds of messages.
const (
	Answers    Kind = "refusal"
	Warnings   Kind = "warning"
	Conditions Kind = "condition"
	Events     Kind = "event"
	Failures   Kind = "error of the plugin"
	Comments   Kind = "comment of convert"
)

// Message is a row of the table: a sentence for people who meet the operator or its plugin. If ResourceQuota of Kubernetes
// says the same, the row has its words, because people and tools know them.
type Message struct {
	Kind Kind
	// Cause is the fact and its cause, and Next the next step, which goes on with the sentence. Both are formats.
	Cause, Next string
	// None is the reason for a row without a next step.
	None string
}

// table has all rows, in files messages_*.go. Tests compare it with the code.
//
//nolint:gochecknoglobals // a table
var table []*Message

// row adds a message to the table.
func row(kind Kind, cause, next string) *Message {
	made := &Message{Kind: kind, Cause: cause, Next: next}
	table = append(table, made)
	return made
}

// part adds a message without a next step of its own, and the reason.
func part(kind Kind, cause, none string) *Message {
	made := row(kind, cause, "")
	made.None = none
	return made
}

// Text returns the sentence.
func (m *Message) Text(args ...any) string { return m.Err(args...).Error() }

// Within returns the sentence in so many bytes. The cause is shortened first.
func (m *Message) Within(most int, args ...any) string {
	const ellipsis = " …"
	cause, next := m.Sides(args...)
	if len(cause)+len(next) > most {
		cause = strings.ToValidUTF8(cause[:most-len(next)-len(ellipsis)], "") + ellipsis
	}
	return cause + next
}

// Sides returns the cause and the next step.
func (m *Message) Sides(args ...any) (cause, next string) {
	split := verbs(m.Cause)
	return fmt.Sprintf(m.Cause, args[:split]...), fmt.Sprintf(m.Next, args[split:]...)
}

// verbs counts the arguments that a format takes.
func verbs(format string) int {
	return strings.Count(strings.ReplaceAll(format, "%%", ""), "%")
}

// Err returns the sentence as an error. An argument for %w is its cause.
func (m *Message) Err(args ...any) error { return advised{fmt.Errorf(m.Cause+m.Next, args...)} }

// Advised is an error whose text has a next step.
type Advised interface {
	error
	Advised()
}

type advised struct{ error }

// Advised implements Advised.
func (advised) Advised() {}

// Unwrap returns the cause.
func (a advised) Unwrap() error { return errors.Unwrap(a.error) }

// Advise returns an error that has a next step: that of its own, or that of a request that can't be decided.
func Advise(err error) error {
	if IsAdvised(err) {
		return err
	}
	return UndecidedRequest.Err(err)
}

// IsAdvised reports whether an error has a next step.
func IsAdvised(err error) bool {
	_, ok := errors.AsType[Advised](err)
	return ok
}
