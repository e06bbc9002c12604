// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { parse } from './quantity';
import type { ClusterQuota, Surge } from './types';

// surgeOf is the surge of a quota: its spec, which is enforced before the status says so, and who holds it; undefined for none.
export function surgeOf(quota: ClusterQuota): Surge | undefined {
  const hard = quota.spec.surge?.hard;
  return hard && Object.keys(hard).length > 0 ? { ...quota.status?.surge, hard } : undefined;
}

// surgeSentences say how much surge there is of each resource, and how much of it is taken.
export function surgeSentences(surge: Surge): string[] {
  return Object.keys(surge.hard)
    .sort((a, b) => a.localeCompare(b))
    .map(resource => {
      const used = surge.used?.[resource];
      return `${resource}: ${surge.hard[resource]} more for replacements${isSome(used) ? `, of which ${used} is taken` : ''}.`;
    });
}

// isTaken reports whether any surge is taken.
export function isTaken(surge: Surge): boolean {
  return Object.values(surge.used ?? {}).some(isSome);
}

function isSome(amount: string | undefined): boolean {
  const parsed = parse(amount);
  return parsed !== null && parsed !== undefined && parsed.nano > 0n;
}
