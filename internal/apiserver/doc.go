// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver notices when the API server stops answering this process, and gives requests a deadline. A replica
// that gets no answers misses all changes, so it must neither grant nor keep a request waiting. A watch that is stuck
// while other calls are answered is not noticed here: requests reveal it, by the versions that their entry or the
// ledger has seen.
//
// History notices that etcd was restored from a backup while this process lived. After each connection that the API
// server ended, each call that failed, and each time without contact, nothing is granted and no ledger written
// (Contact.Await) until the Monitor has read the History's witnesses. A write may still slip through, if its connection
// broke and was made again within the call. It succeeds only if the ledger's resourceVersion is given again. Then it is
// not answered, and the ledger's checksum is of another generation. A restore isn't noticed if less was lost than the last
// renewal of the Lease that this process saw.
//
// Contact knows when the API server answered last. Within gives a deadline to each request that has none. Callers bound
// their own requests. But libraries make requests too, such as the lists of watches and the writes of events, and give
// them no end: a request that the API server takes and never answers would hold its worker for good.
//
// Reads lets callers share reads. Each gets the outcome of a read that began after its call, so
// it is as fresh as one of the caller's own: at most one read of a key is under way, and one waits.
// Lister lists and watches the objects that evaluators look into, and metadata of others.
package apiserver
