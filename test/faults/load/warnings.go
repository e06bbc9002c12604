// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"regexp"
)

// Warnings has clients learn what the API server warns of. It is for the rest.Config of the client that Start is given.
type Warnings struct{}

type warningsKey struct{}

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (Warnings) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if told, is := ctx.Value(warningsKey{}).(*[]string); is {
		*told = append(*told, text)
	}
}

// withWarnings returns a context whose call adds what it is warned of.
func withWarnings(ctx context.Context, told *[]string) context.Context {
	return context.WithValue(ctx, warningsKey{}, told)
}

// unchecked finds the quota in the warning of a request that was admitted although nobody could decide.
var unchecked = regexp.MustCompile(`^not checked against (?:quota (\S+)|the quotas of this namespace), and admitted: `)

// uncheckedOf returns against which quotas a request wasn't checked, an empty name being for all.
func uncheckedOf(warnings []string) []string {
	var quotas []string
	for _, warning := range warnings {
		if found := unchecked.FindStringSubmatch(warning); found != nil {
			quotas = append(quotas, found[1])
		}
	}
	return quotas
}
