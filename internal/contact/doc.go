// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contact notices when the API server stops answering this process, and gives requests a
// deadline. A replica that gets no answers knows nothing of what changes, so it must neither grant
// nor keep a request waiting. A watch that is stuck while other calls are answered is not noticed
// here: requests reveal it, by what their entry or the ledger has seen.
//
// Contact knows when the API server answered last. Within gives a deadline to each request that
// has none. Callers bound their own requests. But
// libraries make requests too, such as the lists of watches and the writes of events, and give
// them no end: one that the API server takes and never answers would hold its worker for good.
package contact
