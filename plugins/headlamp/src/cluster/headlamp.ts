// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { ApiProxy } from '@kinvolk/headlamp-plugin/lib';
import { useEffect, useState } from 'react';
import { type Followed, loading } from '../model/staleness';
import type { KubeItem } from '../model/types';
import { follow, type Page, type Transport, type WatchEvent } from './follow';
import { within } from './within';

export const group = '/apis/quota.sharedquota.dev/v1';
const deadline = 10_000;

// through asks the API server of a cluster by Headlamp's own calls, with the rights of the person who looks.
export function through(cluster: string): Transport {
  return {
    list: <T>(path: string, query: Record<string, string>) =>
      within<Page<T>>(signal => ApiProxy.clusterRequest(path, { cluster, signal, autoLogoutOnAuthError: false }, query), deadline),
    watch<T>(path: string, query: Record<string, string>, heard: (event: WatchEvent<T>) => void, closed: () => void) {
      let over = false;
      const url = `${path}?${new URLSearchParams({ ...query, watch: '1' })}`;
      const end = () => {
        over = true;
        stream.cancel();
      };
      const stream = ApiProxy.stream(
        url,
        (event: WatchEvent<T>) => {
          // Headlamp's cancel has no effect before the connection stands.
          over ? stream.cancel() : heard(event);
        },
        {
          isJson: true,
          cluster,
          reconnectOnFailure: false,
          failCb: () => {
            if (!over) {
              over = true;
              closed();
            }
          },
        }
      );
      return end;
    },
  };
}

// useFollowed follows a list for as long as the component is shown; an empty path follows nothing.
export function useFollowed<T extends KubeItem>(cluster: string, path: string, fieldSelector = ''): Followed<T> {
  const [state, setState] = useState<Followed<T>>(loading);
  useEffect(() => {
    setState(loading);
    if (!path) {
      return;
    }
    return follow<T>(through(cluster), path, fieldSelector ? { fieldSelector } : {}, setState);
  }, [cluster, path, fieldSelector]);
  return state;
}

// useFollowedAll follows several lists of the same kind, and returns the state of each path.
export function useFollowedAll<T extends KubeItem>(cluster: string, paths: string[], fieldSelector = ''): Record<string, Followed<T>> {
  const [states, setStates] = useState<Record<string, Followed<T>>>({});
  const key = paths.join(' ');
  useEffect(() => {
    setStates({});
    const query: Record<string, string> = fieldSelector ? { fieldSelector } : {};
    const stops = key
      .split(' ')
      .filter(Boolean)
      .map(path => follow<T>(through(cluster), path, query, state => setStates(before => ({ ...before, [path]: state }))));
    return () => stops.forEach(stop => stop());
  }, [cluster, key, fieldSelector]);
  return states;
}
