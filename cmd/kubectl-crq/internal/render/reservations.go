// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Reservations returns a line for each reservation, below what must be known of the
// whole ledger.
func Reservations(ledger Ledger, wide bool, style Style, now time.Time) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", style.paint(bold, "Ledger of "+ledger.Quota+":"), reservationsCount(ledger))
	for _, warning := range ledgerWarnings(ledger, now) {
		text.WriteString(style.paint(yellow, warning) + "\n")
	}
	for _, suspected := range ledger.Suspected {
		fmt.Fprintf(&text, "Namespace %s may hold only a part of what is free for another %s, "+
			"because requests in it failed after they were admitted.\n",
			suspected.Namespace, duration.HumanDuration(suspected.Until.Sub(now)))
	}
	if len(ledger.Reservations) > 0 {
		text.WriteString(reservationsTable(ledger, wide, style, now).text(""))
	}
	for _, entry := range ledger.Undecoded {
		text.WriteString("not decoded: " + Visible(entry) + "\n")
	}
	return text.String()
}

func reservationsCount(ledger Ledger) string {
	count, undecoded := len(ledger.Reservations), len(ledger.Undecoded)
	switch {
	case count+undecoded == 0 && len(ledger.Suspected) > 0:
		return "nothing is reserved."
	case count+undecoded == 0:
		return "nothing is reserved; what was admitted has been observed."
	case undecoded > 0:
		return fmt.Sprintf("%d of its reservations decoded, %d not.", count, undecoded)
	case count == 1:
		return fmt.Sprintf("1 reservation, of %s.", amountsText(ledger.Reserved))
	default:
		return fmt.Sprintf("%d reservations, of %s.", count, amountsText(ledger.Reserved))
	}
}

// ledgerWarnings say why nothing is admitted by the ledger, and what follows.
func ledgerWarnings(ledger Ledger, now time.Time) []string {
	var warnings []string
	switch {
	case !ledger.Known:
		warnings = append(warnings, fmt.Sprintf(
			"It has encoding %d, which this plugin doesn't know: use the plugin of the operator's version.", ledger.Encoding))
	case !ledger.Intact:
		warnings = append(warnings, "Somebody else than the operator has written it. "+
			"Nothing is admitted by it until the operator has rebuilt it, which takes moments while one runs.")
	}
	if ledger.Sealed != nil {
		warnings = append(warnings, fmt.Sprintf("It has been sealed for %s: nothing is admitted by it, "+
			"for it may lack what was in flight when it was made. The quota's condition Ready says until when.",
			duration.HumanDuration(now.Sub(ledger.Sealed.Time))))
	}
	return warnings
}

func reservationsTable(ledger Ledger, wide bool, style Style, now time.Time) *table {
	made := &table{}
	heading := plains("NAMESPACE", "OBJECT", "ATTEMPT", "EXPIRES", "AMOUNTS")
	if wide {
		heading = append(heading, plains("FROM", "UID")...)
	}
	made.add(style.headings(heading)...)
	for _, one := range ledger.Reservations {
		cells := plains(orDash(one.Namespace), objectText(one), one.Attempt)
		cells = append(cells, expiryCell(one, style, now), plain(amountsText(one.Amounts)))
		if wide {
			cells = append(cells, plains(orDash(one.From), string(one.UID))...)
		}
		made.add(cells...)
	}
	return made
}

// objectText is as in kubectl get -o name: "deployments.apps/web". Of an escrow it is the replica.
func objectText(of Reservation) string {
	if of.Attempt == Escrow {
		return "replica/" + of.Name
	}
	return schema.GroupResource{Group: of.Group, Resource: of.Resource}.String() + "/" + of.Name
}

// expiryCell tells of what should have gone and didn't, and of what seems to have failed.
func expiryCell(of Reservation, style Style, now time.Time) cell {
	left := of.Expires.Sub(now)
	if left <= 0 {
		return style.cell(yellow, duration.HumanDuration(-left)+" ago")
	}
	if of.Doubtful {
		return style.cell(yellow, "in "+duration.HumanDuration(left)+", doubtful")
	}
	return plain("in " + duration.HumanDuration(left))
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
