// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { through } from './headlamp';
import { dryRunThrough } from './headlamp-dryrun';
import { within } from './within';

const { clusterRequest } = vi.hoisted(() => ({ clusterRequest: vi.fn() }));
vi.mock('@kinvolk/headlamp-plugin/lib', () => ({ ApiProxy: { clusterRequest } }));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

describe('a deadline', () => {
  it('aborts what lasts longer', async () => {
    let signal: AbortSignal | undefined;
    const late = within(given => {
      signal = given;
      return new Promise(() => {});
    }, 2000);
    const failed = expect(late).rejects.toThrow('within 2 seconds');
    await vi.advanceTimersByTimeAsync(1999);
    expect(signal?.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await failed;
    expect(signal?.aborted).toBe(true);
  });

  it('leaves alone what ends before, well or not', async () => {
    const signals: AbortSignal[] = [];
    const remember = (signal: AbortSignal) => signals.push(signal);
    expect(await within(async signal => remember(signal), 2000)).toBe(1);
    const wrong = within(signal => {
      remember(signal);
      return Promise.reject(new Error('wrong'));
    }, 2000);
    await expect(wrong).rejects.toThrow('wrong');
    expect(vi.getTimerCount()).toBe(0);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  });

  it.each([
    ['a list', 10, () => through('c').list('/x', {})],
    ['what the cluster serves', 30, () => dryRunThrough('c').discover('/api/v1')],
    ['a dry run', 30, () => dryRunThrough('c').send('PATCH', '/x', {}, '{}')],
  ] as const)('%s has one, because the body may never come to an end', async (_, seconds, ask) => {
    clusterRequest.mockReset().mockReturnValue(new Promise(() => {}));
    const failed = expect(ask()).rejects.toThrow(`within ${seconds} seconds`);
    await vi.advanceTimersByTimeAsync(seconds * 1000);
    await failed;
    expect(clusterRequest).toHaveBeenCalledOnce();
    expect(clusterRequest.mock.calls[0]?.[1]).toMatchObject({ cluster: 'c', signal: { aborted: true } });
  });
});
