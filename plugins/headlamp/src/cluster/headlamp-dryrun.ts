// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { ApiProxy } from '@kinvolk/headlamp-plugin/lib';
import type { Api, ApiResource } from './dryrun';
import { within } from './within';

const deadline = 30_000;

// dryRunThrough asks the API server of a cluster by Headlamp's own calls.
export function dryRunThrough(cluster: string): Api {
  return {
    async discover(path) {
      const ask = (signal: AbortSignal) => ApiProxy.clusterRequest(path, { cluster, signal, autoLogoutOnAuthError: false });
      const found = (await within(ask, deadline)) as { resources: ApiResource[] };
      return found.resources;
    },
    async send(method, path, query, body) {
      const type = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json';
      const ask = (signal: AbortSignal) =>
        ApiProxy.clusterRequest(
          path,
          { cluster, method, body, isJSON: false, signal, autoLogoutOnAuthError: false, headers: { 'Content-Type': type } },
          query
        );
      const response = (await within(ask, deadline)) as Response;
      return { warning: response.headers.get('Warning'), hidden: response.type === 'cors' };
    },
  };
}
