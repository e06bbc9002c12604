// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from 'vitest';
import { barsOf, barsOfView, fullness, inWords } from './bars';
import type { ClusterQuota, LocalQuota, Quantities } from './types';

function quota(hard: Quantities, used: Quantities, reserved: Quantities = {}): ClusterQuota {
  return {
    metadata: { name: 'payments', uid: 'u' },
    spec: { selector: {}, quota: { hard } },
    status: { total: { hard, used }, reserved },
  };
}

describe('a bar', () => {
  it('shows used, reserved and available', () => {
    const [bar] = barsOf(quota({ 'requests.cpu': '8' }, { 'requests.cpu': '6' }, { 'requests.cpu': '500m' }));
    expect(bar).toMatchObject({ usedShare: 0.75, reservedShare: 0.0625, available: '1500m', percent: 81, tone: 'near' });
    expect(bar && inWords(bar)).toBe('6 used, 500m reserved, 1500m available, of 8 (81%)');
  });

  it.each([
    ['80% are no cause for alarm', '10', '8', 'good', 80],
    ['more is', '100', '81', 'near', 81],
    ['nothing left', '5', '5', 'full', 100],
    ['above the limit', '4', '5', 'over', 125],
    ['a limit of nothing, and nothing used', '0', '0', 'full', 100],
    ['a limit of nothing, and something used', '0', '1', 'over', 100],
    ['just below the limit rounds down', '1000', '999', 'near', 99],
  ])('%s', (_, hard, used, tone, percent) => {
    expect(barsOf(quota({ pods: hard }, { pods: used }))[0]).toMatchObject({ tone, percent });
  });

  it('never leaves its frame', () => {
    const [bar] = barsOf(quota({ pods: '4' }, { pods: '9' }, { pods: '3' }));
    expect(bar).toMatchObject({ usedShare: 1, reservedShare: 0, available: '0' });
  });

  it('says what is not counted', () => {
    const [bar] = barsOf(quota({ 'count/jobs.batch': '4' }, {}));
    expect(bar).toMatchObject({ used: '?', available: '?', percent: null, tone: 'unknown' });
    expect(bar && inWords(bar)).toBe('not counted at present, of 4');
  });

  it('of a view has what the namespace uses itself', () => {
    const view: LocalQuota = {
      metadata: { name: 'payments', namespace: 'shop', uid: 'v' },
      status: { total: { hard: { pods: '10', services: '5' }, used: { pods: '3' } }, available: { pods: '6' }, used: { pods: '1' } },
    };
    expect(barsOfView(view)).toMatchObject([
      { resource: 'pods', here: '1', available: '6' },
      { resource: 'services', here: '?', tone: 'unknown' },
    ]);
  });

  it('orders quotas by the fullest', () => {
    expect(fullness(barsOf(quota({ pods: '10', services: '5' }, { pods: '1', services: '4' })))).toBe(80);
    expect(fullness([])).toBe(-1);
  });
});
