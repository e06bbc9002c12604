// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { ApiProxy } from '@kinvolk/headlamp-plugin/lib';
import type { Api, ApiResource } from './dryrun';

const deadline = 30_000;

// dryRunThrough asks the API server of a cluster by Headlamp's own calls.
export function dryRunThrough(cluster: string): Api {
  return {
    async discover(path) {
      const found = (await ApiProxy.clusterRequest(path, { cluster, timeout: deadline, autoLogoutOnAuthError: false })) as {
        resources: ApiResource[];
      };
      return found.resources;
    },
    async send(method, path, query, body) {
      const type = method === 'PATCH' ? 'application/apply-patch+yaml' : 'application/json';
      const response = (await ApiProxy.clusterRequest(
        path,
        { cluster, method, body, isJSON: false, timeout: deadline, autoLogoutOnAuthError: false, headers: { 'Content-Type': type } },
        query
      )) as Response;
      return { warning: response.headers.get('Warning'), hidden: response.type === 'cors' };
    },
  };
}
