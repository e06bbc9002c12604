//go:build !race

// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"
)

// mutations are defects, and in how many schedules at most each must be found. Defects that need a
// coincidence are looked for in schedules that make it likely. That an equal count of one source
// does not tell how far it has come is found by TestEveryOrder.
func mutations() map[string]struct {
	mutation
	within int
} {
	type row = struct {
		mutation
		within int
	}
	return map[string]row{
		"a front end trusts its caches":                            {mutation{noEpoch: true, noWitness: true, noLook: true}, 3000},
		"a front end compares neither epochs nor quotas":           {mutation{noEpoch: true, noWitness: true}, 3000},
		"a front end does not compare quotas":                      {mutation{noWitness: true}, 3000},
		"a front end believes a look for seconds":                  {mutation{trustsLooks: true, theme: 2}, 5000},
		"a list is taken object by object":                         {mutation{listsOneByOne: true}, 3000},
		"only the request's own namespace is heeded":               {mutation{joinsAlone: true, theme: 6}, 3000},
		"a front end says to have seen all that joined":            {mutation{boasts: true, theme: 6}, 3000},
		"a list is taken for what changed since":                   {mutation{listsChanges: true, theme: 7}, 5000},
		"a charge is judged whatever is known of namespaces":       {mutation{noKnowledge: true}, 3000},
		"an equal count does not tell how far it has come":         {mutation{noTouchAtAll: true}, 3000},
		"a settle that raises what is used waits":                  {mutation{lazy: 160 * time.Millisecond}, 3000},
		"a lowered limit raises no fence":                          {mutation{noFence: true}, 3000},
		"a count is settled though it is behind":                   {mutation{takesOld: true, theme: 3, first: 17000}, 3000},
		"an expired reservation is dropped without a look":         {mutation{dropsBlindly: true}, 3000},
		"charges are answered before they are written":             {mutation{answersEarly: true}, 3000},
		"writes ignore conflicts":                                  {mutation{overwrites: true}, 3000},
		"a ledger is taken to be there because a machine knows it": {mutation{trustsMachine: true, first: 103610}, 1},
		"a ledger is named though its quota has changed":           {mutation{renames: true, theme: 5, first: 5500}, 1000},
		"a reservation ends before the API server gives up":        {mutation{shortLife: true}, 3000},
		"what was used holds though a namespace joined":            {mutation{noJoin: true, theme: 7, first: 20000}, 5000},
		"a namespace is counted before all that it brought":        {mutation{noProof: true, theme: 6}, 3000},
		"a holder grants from an escrow that has ended":            {mutation{escrow: true, endless: true, theme: 8, first: 38000}, 2000},
		"nobody waits for an escrow that was asked back":           {mutation{escrow: true, noRecall: true, theme: 8}, 10000},
		"the escrow of a replica that is gone ends at once":        {mutation{escrow: true, dropsEscrows: true, theme: 9, first: 20000}, 3000},
		"a reservation ends by its writer's clock":                 {mutation{byWriter: reservations}, 3000},
		"a reservation is put in doubt by its writer's clock":      {mutation{byWriter: doubts}, 3000},
		"a seal ends by its writer's clock":                        {mutation{byWriter: seals, theme: 1}, 3000},
		"a fence ends by its writer's clock":                       {mutation{byWriter: fences, theme: 5}, 3000},
		"the escrow of a dead replica ends by that one's clock":    {mutation{escrow: true, byWriter: escrowed, theme: 9, first: 4000}, 3000},
		"a fence doesn't bind limits that only advise":             {mutation{modes: true, noModeFence: true}, 3000},
		"limits that only advise are enforced":                     {mutation{modes: true, enforcesAll: true}, 3000},
		"a denial is answered without a look at the namespace":     {mutation{deniesUnseen: true, first: 2000}, 3000},
		"a denial rests on a spec's version of seconds before":     {mutation{rarelyLooks: true}, 3000},
		"nothing that needs time is waited for":                    {mutation{impatient: true}, 3000},
		"a quota that refuses is waived if it can't decide":        {mutation{waivesAll: true}, 3000},
		"nobody hears that a ledger doesn't take the count":        {mutation{silent: true, theme: 10, first: 3000}, 3000},
		"a process goes on after etcd was restored":                {mutation{restores: true, outlives: true}, 3000},
		"a ledger of another history is trusted":                   {mutation{restores: true, trustsLost: true}, 3000},
		"any charge may take surge":                                {mutation{surges: true, plainByMost: true}, 3000},
		"surge that is taken doesn't count against other charges":  {mutation{surges: true, besides: true}, 3000},
		"escrow is taken from surge":                               {mutation{surges: true, escrow: true, escrowByMost: true}, 3000},
		"a lowered surge raises no fence":                          {mutation{surges: true, noSurgeFence: true, theme: 11, first: 3000}, 3000},
		"of two surges that both bind, the larger one does":        {mutation{surges: true, largerSurge: true, theme: 11, first: 17000}, 3000},
		"an object replaces another one if it isn't known":         {mutation{surges: true, believes: true}, 3000},
		"so is one as another one leaves":                          {mutation{leftProves: true, theme: 6}, 3000},
	}
}

func TestMutations(t *testing.T) {
	for name, mutated := range mutations() {
		t.Run(name, func(t *testing.T) {
			words := newVocabulary()
			for seed := range mutated.within {
				first := mutated.first
				if mutated.escrow {
					first |= withEscrow
				}
				if mutated.surges {
					first |= withSurge
				}
				if mutated.modes {
					first |= withModes
				}
				if mutated.restores {
					first |= withRestores
				}
				if failure := newSchedule(words, first+uint64(seed), mutated.mutation, nil).run(); failure != nil {
					t.Logf("found in schedule %d: %s", seed+1, failure.message)
					return
				}
			}
			t.Errorf("not found in %d schedules", mutated.within)
		})
	}
}
