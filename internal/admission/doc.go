// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admission decides the next step of a replica for one request, until it answers. Next is a pure function of the
// Facts: it knows no clock, client, context, goroutine, lock or log, nor the cost of a request. Its caller is a loop:
//
//	for facts := (admission.Facts{}); ; {
//		facts.Now, facts.Over, facts.Lenient = …
//		switch action := admission.Next(facts); action.Do {
//		case admission.Look:
//			quotas, err := the quotas that cover the namespace, as action.Look says
//			facts.Looked(action, quotas, err)
//		case admission.Charge:
//			outcome := charge facts.Covering, except for action.Waivers, with surge if facts.Replaces
//			facts.Charged(action, outcome, whether the charge was cut short, clock.Now())
//		case admission.Check:
//			facts.Last, facts.Unwritten = action, why the ledger of action.Quota can't be written
//		case admission.Wait:
//			facts.Last = action, at action.Until
//		case admission.Prove:
//			facts.Found(action, whether the object replaces another one)
//		case admission.Answer:
//			return the last outcome
//		}
//	}
//
// webhooks/objects runs it with the API server, and internal/simulation with a model of it.
//
//	Look ──► Charge ──────────────── granted ─────────────────────────────────► Answer
//	 ▲        │   ▲                                                               ▲
//	 │ (Wait) ▼   └─ Charge with a Waiver ◄─ yes ─ does the quota admit then? ─ no ─┘
//	 └─ not granted ─ neither a look nor time changes it ──────────┘
//	                  └─ Prove, if there is surge ─ it replaces another object ─► Charge
//
// Invariants:
//
//   - only a Granted outcome admits a request. It is answered at once;
//   - a refusal rests on a look that was made after the charge, unless the request's time is over;
//   - surge is charged only if the object was proved to replace another one;
//   - a Waiver holds for one version of a quota's spec, and follows a live look at that spec.
//
// Exactness rests on none of the times: they are policy.
package admission
