// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	quotav1 "github.com/sharedquota/shared-quota-operator/api/v1"
	"github.com/sharedquota/shared-quota-operator/cmd/kubectl-crq/internal/render"
	"github.com/sharedquota/shared-quota-operator/internal/outcomes"
)

func newReservations(env *environment) *cobra.Command {
	var out *output
	cmd := &cobra.Command{
		Use:   "reservations QUOTA",
		Short: "List what was admitted and not observed yet, from the quota's ledger",
		Long: "List what was admitted and not observed yet, from the quota's ledger. A reservation goes as soon as its object " +
			"is counted; one that expires is checked on, and goes if its object never came to be. If its object hasn't appeared " +
			"after three seconds, a reservation is doubtful: the request seems to have failed after it was admitted. " +
			"An escrow is room that a replica of the operator holds for requests to come.",
		Example: "  kubectl crq reservations payments\n" +
			"  kubectl crq reservations payments -o json",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: env.completeQuotas(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return reservations(cmd.Context(), env, out, args[0])
		},
	}
	out = newOutput(cmd, formatName)
	return cmd
}

func reservations(ctx context.Context, env *environment, out *output, name string) error {
	reader, err := env.client()
	if err != nil {
		return err
	}
	object := &quotav1.QuotaLedger{}
	if err := reader.Get(ctx, client.ObjectKey{Name: name}, object); err != nil {
		return ledgerError(ctx, reader, name, err)
	}
	view := render.LedgerOf(object)
	return out.answer(env, &view, render.Kind, func(wide bool, style render.Style) string {
		return render.Reservations(view, wide, style, env.clock.Now())
	})
}

// ledgerError distinguishes a quota that doesn't exist from a quota without a ledger.
func ledgerError(ctx context.Context, reader client.Reader, name string, err error) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("reading the quota's ledger: %w", err)
	}
	if _, err := getQuota(ctx, reader, name); err != nil {
		return err
	}
	return outcomes.NoLedger.Err(name, err)
}
