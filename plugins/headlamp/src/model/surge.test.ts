// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { describe, expect, it } from 'vitest';
import { isTaken, surgeOf, surgeSentences } from './surge';
import type { ClusterQuota } from './types';

function quota(spec: ClusterQuota['spec'], status?: ClusterQuota['status']): ClusterQuota {
  return { metadata: { name: 'payments', uid: 'q' }, spec, status };
}

describe('surge', () => {
  it('is that of the spec, and who holds it', () => {
    const workloads = [{ kind: 'Deployment', namespace: 'shop', name: 'web', since: '2026-11-01T08:00:00Z' }];
    const spec = { selector: {}, quota: { hard: { pods: '5' } } };
    expect(surgeOf(quota(spec))).toBeUndefined();
    expect(surgeOf(quota({ ...spec, surge: {} }))).toBeUndefined();
    expect(surgeOf(quota({ ...spec, surge: { hard: { pods: '3' } } }))).toEqual({ hard: { pods: '3' } });
    const status = { surge: { hard: { pods: '2' }, used: { pods: '1' }, workloads } };
    expect(surgeOf(quota({ ...spec, surge: { hard: { pods: '3' } } }, status))).toEqual({ hard: { pods: '3' }, used: { pods: '1' }, workloads });
  });

  it('is said in a sentence for each resource', () => {
    const surge = { hard: { 'requests.cpu': '500m', pods: '3' }, used: { pods: '2', 'requests.cpu': '0' } };
    expect(surgeSentences(surge)).toEqual(['pods: 3 more for replacements, of which 2 is taken.', 'requests.cpu: 500m more for replacements.']);
    expect(isTaken(surge)).toBe(true);
    expect(isTaken({ hard: { pods: '3' }, used: { pods: '0' } })).toBe(false);
    expect(isTaken({ hard: { pods: '3' } })).toBe(false);
  });
});
