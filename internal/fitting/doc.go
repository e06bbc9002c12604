// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fitting reports whether the objects of manifests fit into the rest of quotas.
//
// Three steps, each pure:
//
//   - Expand lists the objects of a manifest: the object itself, and the pods and claims that Kubernetes' controllers
//     make of it.
//   - Rules complete each object as the API server does before quotas are charged, by Kubernetes'
//     own code: the defaults of the API types, LimitRanges, default priority and storage classes,
//     a runtime class's overhead. Webhooks that change objects are not asked.
//   - Fitter makes internal/evaluation charge each object to each quota, as admission would, and compares the sums with
//     the available amounts.
//
// It judges the amount that must be free at the worst moment, so that all objects come to be in the end. Controllers
// try again: the room that one of them frees on the way it may use again. But one manifest doesn't count on the room
// that another frees. A quota that is over its limit refuses every object that adds to it, until enough has been freed.
//
// Invariants:
//
//   - An object that is said to fit can be admitted, one object after another, unless its Demand
//     says otherwise: Unpriced pods may cost more, and devices of Unread templates aren't counted.
//   - More to make, or less available, never turns "doesn't fit" into "fits".
//   - A resource that isn't counted yet is never taken for available.
//   - Nothing is made once for each pod: 10,000 pods are one object and a number.
//   - If the number can't be exact it is too high rather than too low, and a note says so.
//   - Arguments are not changed.
//
// It knows no client.
package fitting
