// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contact is about the API server not answering. Contact knows when it last answered this
// process. A replica that gets no answers knows nothing of what changes, so it must neither grant
// nor keep a request waiting.
//
// Within gives a deadline to each request that has none. Callers bound their own requests. But
// libraries make requests too, such as the lists of watches and the writes of events, and give
// them no end: one that the API server takes and never answers would hold its worker for good.
package contact
