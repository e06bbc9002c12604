// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Followed } from '../model/staleness';
import type { KubeItem } from '../model/types';
import { follow, mostItems, type Page, type Transport, type WatchEvent } from './follow';

function item(name: string, more = {}): KubeItem {
  return { metadata: { name, uid: name, ...more } };
}

// An API server whose answers the test gives.
class Server implements Transport {
  lists: Record<string, string>[] = [];
  watches: Record<string, string>[] = [];
  answer: () => Page<KubeItem> = () => ({ items: [item('a')], metadata: { resourceVersion: '7' } });
  heard: (event: WatchEvent<KubeItem>) => void = () => {};
  closed: () => void = () => {};
  stopped = 0;
  delay = 0;

  list<T>(_: string, query: Record<string, string>) {
    this.lists.push(query);
    const { delay } = this;
    return new Promise<Page<T>>(resolve => {
      const page = this.answer() as unknown as Page<T>;
      delay ? setTimeout(() => resolve(page), delay) : resolve(page);
    });
  }

  watch<T>(_: string, query: Record<string, string>, heard: (event: WatchEvent<T>) => void, closed: () => void) {
    this.watches.push(query);
    this.heard = heard as unknown as typeof this.heard;
    this.closed = closed;
    return () => this.stopped++;
  }
}

function failure(status: number): Error {
  return Object.assign(new Error(`status ${status}`), { status });
}

describe('a list that is followed', () => {
  let server: Server;
  let state: Followed<KubeItem>;
  let stop: () => void;
  const names = () => state.items.map(({ metadata }) => metadata.name);

  beforeEach(() => {
    vi.useFakeTimers();
    server = new Server();
  });
  afterEach(() => {
    stop();
    vi.useRealTimers();
  });

  async function started() {
    stop = follow(server, '/x', { fieldSelector: 'f' }, told => (state = told));
    await vi.advanceTimersByTimeAsync(0);
  }

  it('is live once it is listed, and watched from there', async () => {
    await started();
    expect(state).toMatchObject({ phase: 'live', truncated: false });
    expect(server.watches).toEqual([{ fieldSelector: 'f', resourceVersion: '7', allowWatchBookmarks: 'true', timeoutSeconds: '300' }]);
  });

  it('follows what is added, changed and deleted', async () => {
    await started();
    server.heard({ type: 'ADDED', object: item('b') });
    server.heard({ type: 'ADDED', object: item('c') });
    server.heard({ type: 'MODIFIED', object: item('b', { generation: 2 }) });
    server.heard({ type: 'DELETED', object: item('a') });
    server.heard({ type: 'BOOKMARK', object: item('') });
    await vi.advanceTimersByTimeAsync(200);
    expect(names()).toEqual(['b', 'c']);
    expect(state.items[0]?.metadata.generation).toBe(2);
  });

  it('is stale while the API server doesn’t answer, keeps its figures, and recovers', async () => {
    await started();
    const { heardAt } = state;
    server.answer = () => {
      throw new Error('Unreachable');
    };
    await vi.advanceTimersByTimeAsync(60_000);
    server.closed();
    await vi.advanceTimersByTimeAsync(1);
    expect(state).toMatchObject({ phase: 'stale', error: 'Unreachable', heardAt });
    expect(names()).toEqual(['a']);
    server.answer = () => ({ items: [item('z')], metadata: { resourceVersion: '9' } });
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.phase).toBe('live');
    expect(names()).toEqual(['z']);
    expect(server.watches.at(-1)?.resourceVersion).toBe('9');
  });

  it('asks again after pauses that grow to half a minute', async () => {
    server.answer = () => {
      throw new Error('Unreachable');
    };
    await started();
    expect(state.phase).toBe('failed');
    await vi.advanceTimersByTimeAsync(31_000);
    expect(server.lists).toHaveLength(6);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.lists).toHaveLength(8);
  });

  it.each([
    [403, 'denied'],
    [401, 'denied'],
    [404, 'missing'],
    [500, 'failed'],
  ])('%d is %s', async (status, phase) => {
    server.answer = () => {
      throw failure(status);
    };
    await started();
    expect(state.phase).toBe(phase);
  });

  it('lists again when the watch is too old', async () => {
    await started();
    await vi.advanceTimersByTimeAsync(60_000);
    server.answer = () => ({ items: [item('fresh')], metadata: { resourceVersion: '20' } });
    server.heard({ type: 'ERROR', object: item('') });
    await vi.advanceTimersByTimeAsync(0);
    expect(server.stopped).toBe(1);
    expect(names()).toEqual(['fresh']);
  });

  it('takes a watch for dead that says nothing, not even a bookmark', async () => {
    await started();
    await vi.advanceTimersByTimeAsync(140_000);
    server.heard({ type: 'BOOKMARK', object: item('') });
    await vi.advanceTimersByTimeAsync(140_000);
    expect(server.lists).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(20_000);
    expect(server.lists).toHaveLength(2);
    expect(server.stopped).toBe(1);
  });

  it('doesn’t hammer a server that ends each watch at once', async () => {
    await started();
    for (let second = 0; second < 60; second++) {
      server.closed();
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(server.lists.length).toBeLessThan(25);
  });

  it.each([[[]], [['ADDED', 'BOOKMARK']]])('doesn’t hammer a server that answers each watch with an error, after %j', async before => {
    await started();
    for (let second = 0; second < 60; second++) {
      before.forEach(type => server.heard({ type, object: item('a') }));
      server.heard({ type: 'ERROR', object: item('') });
      await vi.advanceTimersByTimeAsync(1000);
    }
    expect(server.lists.length).toBeGreaterThan(5);
    expect(server.lists.length).toBeLessThan(25);
    expect(server.watches.length - server.stopped).toBeLessThanOrEqual(1);
  });

  it('has one watch, however long the list takes after an error', async () => {
    await started();
    await vi.advanceTimersByTimeAsync(140_000);
    server.delay = 20_000;
    server.heard({ type: 'ERROR', object: item('') });
    await vi.advanceTimersByTimeAsync(60_000);
    expect(server.lists).toHaveLength(2);
    expect(server.watches).toHaveLength(2);
    expect(server.stopped).toBe(1);
    server.heard({ type: 'ADDED', object: item('b') });
    await vi.advanceTimersByTimeAsync(200);
    expect(names()).toEqual(['a', 'b']);
  });

  it('reads page by page, and has a bound', async () => {
    let pages = 0;
    server.answer = () => ({
      items: Array.from({ length: 500 }, (_, index) => item(`${pages}-${index}`)),
      metadata: { resourceVersion: '7', continue: `page-${++pages}` },
    });
    await started();
    await vi.advanceTimersByTimeAsync(0);
    expect(state.items).toHaveLength(mostItems);
    expect(state.truncated).toBe(true);
    expect(server.lists[1]).toMatchObject({ limit: '500', continue: 'page-1' });
    server.heard({ type: 'ADDED', object: item('one-more') });
    await vi.advanceTimersByTimeAsync(200);
    expect(state.items).toHaveLength(mostItems);
  });

  it('says nothing any more once it is stopped', async () => {
    await started();
    const last = state;
    stop();
    expect(server.stopped).toBe(1);
    server.heard({ type: 'ADDED', object: item('b') });
    await vi.advanceTimersByTimeAsync(400_000);
    expect(state).toBe(last);
    expect(server.lists).toHaveLength(1);
  });
});
