// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import type { Followed, Phase } from '../model/staleness';
import type { KubeItem } from '../model/types';

export interface Page<T> {
  items: T[] | null;
  metadata: { resourceVersion?: string; continue?: string };
}

export interface WatchEvent<T> {
  type: string;
  object: T;
}

// How the API server is asked. src/cluster/headlamp.ts does it with Headlamp's own calls.
export interface Transport {
  list<T>(path: string, query: Record<string, string>): Promise<Page<T>>;
  // watch calls closed once, unless what it returns was called before.
  watch<T>(path: string, query: Record<string, string>, heard: (event: WatchEvent<T>) => void, closed: () => void): () => void;
}

// More items than that are left out, and the page says so.
export const mostItems = 5000;
const pageSize = 500;
// The API server ends a watch after so many seconds, so that a connection that died unnoticed doesn't last.
const watchSeconds = 300;
// It sends a bookmark every minute. A watch that says nothing for longer is dead.
const silence = 150_000;
const longestPause = 30_000;
// A watch that ends sooner than that, however it ends, counts as failed, and the next one is delayed.
const steady = 5000;
// Changes that come together are shown together.
const gather = 100;

// follow lists what path names, and keeps the list up to date until the function that it returns is called. It goes on
// if the connection breaks, and tells so.
export function follow<T extends KubeItem>(
  transport: Transport,
  path: string,
  query: Record<string, string>,
  tell: (state: Followed<T>) => void
): () => void {
  const items = new Map<string, T>();
  let state: Followed<T> = { phase: 'loading', items: [], heardAt: 0, error: '', truncated: false };
  let ended = false;
  let failures = 0;
  let stopWatch: (() => void) | null = null;
  let next: ReturnType<typeof setTimeout> | undefined;
  let gathering: ReturnType<typeof setTimeout> | undefined;

  function told(change: Partial<Followed<T>>) {
    state = { ...state, ...change, items: [...items.values()] };
    if (!ended) {
      tell(state);
    }
  }

  function pause(work: () => void, milliseconds: number) {
    clearTimeout(next);
    if (!ended) {
      next = setTimeout(work, milliseconds);
    }
  }

  async function listAll(): Promise<{ version: string; truncated: boolean; found: T[] }> {
    const found: T[] = [];
    let more = '';
    for (;;) {
      const page = await transport.list<T>(path, { ...query, limit: String(pageSize), ...(more && { continue: more }) });
      found.push(...(page.items ?? []));
      more = page.metadata.continue ?? '';
      if (!more || found.length >= mostItems) {
        return { version: page.metadata.resourceVersion ?? '', truncated: more !== '', found: found.slice(0, mostItems) };
      }
    }
  }

  async function start() {
    let listed;
    try {
      listed = await listAll();
    } catch (error) {
      return failed(error);
    }
    if (ended) {
      return;
    }
    items.clear();
    listed.found.forEach(item => items.set(keyOf(item), item));
    told({ phase: 'live', heardAt: Date.now(), error: '', truncated: listed.truncated });
    watch(listed.version);
  }

  function failed(error: unknown) {
    if (ended) {
      return;
    }
    failures++;
    told({ phase: phaseAfter(error, state.heardAt > 0), error: error instanceof Error ? error.message : String(error) });
    pause(start, Math.min(1000 * 2 ** (failures - 1), longestPause));
  }

  function watch(version: string) {
    const since = Date.now();
    let over = false;
    const watched = { ...query, resourceVersion: version, allowWatchBookmarks: 'true', timeoutSeconds: String(watchSeconds) };
    stopWatch = transport.watch<T>(path, watched, heard, again);
    pause(again, silence);

    // again ends this watch, if it hasn't ended, and lists once more: at once if the watch was steady.
    function again() {
      if (ended || over) {
        return;
      }
      over = true;
      stopWatch?.();
      stopWatch = null;
      failures = Date.now() - since < steady ? failures + 1 : 0;
      pause(start, failures === 0 ? 0 : Math.min(500 * 2 ** (failures - 1), longestPause));
    }

    function heard(event: WatchEvent<T>) {
      if (ended || over) {
        return;
      }
      if (event.type === 'ERROR') {
        return again();
      }
      pause(again, silence);
      apply(event);
    }
  }

  function apply({ type, object }: WatchEvent<T>) {
    state = { ...state, heardAt: Date.now() };
    if (type === 'BOOKMARK') {
      return;
    }
    if (type === 'DELETED') {
      items.delete(keyOf(object));
    } else if (items.size < mostItems || items.has(keyOf(object))) {
      items.set(keyOf(object), object);
    } else {
      state = { ...state, truncated: true };
    }
    gathering ??= setTimeout(() => {
      gathering = undefined;
      told({ phase: 'live' });
    }, gather);
  }

  void start();
  return () => {
    ended = true;
    clearTimeout(next);
    clearTimeout(gathering);
    stopWatch?.();
  };
}

function keyOf(item: KubeItem): string {
  return `${item.metadata.namespace ?? ''}/${item.metadata.name}`;
}

// phaseAfter says what a failed list comes to. Figures that were there stay, and are stale.
function phaseAfter(error: unknown, known: boolean): Phase {
  const status = typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined;
  if (status === 403 || status === 401) {
    return 'denied';
  }
  if (status === 404) {
    return 'missing';
  }
  return known ? 'stale' : 'failed';
}
