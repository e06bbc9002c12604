// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package history remembers what quotas have seen in the last thirty days: the most that was used and reserved of each
// resource, the requests that didn't fit, and who changed a quota. It decides nothing.
//
// Each replica has a Recorder. It publishes its own part, and knows those of the others; what is asked of it is answered
// from all parts together. Peaks are merged by maximum, requests by sum. A part that was adopted by another one counts in
// that alone.
//
// It has no clock: whoever calls says when something happened. A day is one in UTC.
package history
