// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { format, parse, type Quantity, share } from './quantity';
import type { ClusterQuota, LocalQuota, Quantities } from './types';

// How near to its limit a resource is. Colours follow it, and words say it.
export type Tone = 'good' | 'near' | 'full' | 'over' | 'unknown';

export interface Bar {
  resource: string;
  hard: string;
  used: string;
  reserved: string;
  available: string;
  // What the namespace that looks uses itself, if one does.
  here?: string;
  // Parts of the bar's length. Together they are 1 at most.
  usedShare: number;
  reservedShare: number;
  // What is used and reserved of the limit, in percent, rounded down; null if that can't be told.
  percent: number | null;
  tone: Tone;
}

const nothing: Quantity = { nano: 0n, binary: false };
// From here on a terminal shows yellow, too.
const nearPercent = 80;

// unknown is what stands for a figure that can't be counted at present, as in kubectl get.
export const unknown = '?';

function barOf(resource: string, hard: string, used: string | undefined, reserved: string | undefined): Bar {
  const limit = parse(hard) ?? nothing;
  const counted = parse(used);
  const held = parse(reserved) ?? nothing;
  const bar = { resource, hard, used: used ?? unknown, reserved: reserved ?? '0' };
  if (!counted) {
    return { ...bar, used: unknown, available: unknown, usedShare: 0, reservedShare: 0, percent: null, tone: 'unknown' };
  }
  const charged = counted.nano + held.nano;
  const free = limit.nano > charged ? limit.nano - charged : 0n;
  const usedShare = Math.min(share(counted.nano, limit.nano), 1);
  // A limit of 0 is reached from the start.
  const percent = limit.nano > 0n ? Number((charged * 100n) / limit.nano) : 100;
  return {
    ...bar,
    available: format({ nano: free, binary: limit.binary || counted.binary }),
    usedShare,
    reservedShare: Math.min(share(held.nano, limit.nano), 1 - usedShare),
    percent,
    tone: toneOf(counted.nano > limit.nano, free, percent),
  };
}

function toneOf(above: boolean, free: bigint, percent: number): Tone {
  if (above) {
    return 'over';
  }
  if (free === 0n) {
    return 'full';
  }
  return percent > nearPercent ? 'near' : 'good';
}

// barsOf are those of a ClusterResourceQuota. Its limits are those of the spec, because these bind.
export function barsOf(quota: ClusterQuota): Bar[] {
  const status = quota.status;
  return sorted(quota.spec.quota.hard, (resource, hard) =>
    barOf(resource, hard, status?.total?.used?.[resource], status?.reserved?.[resource])
  );
}

// barsOfView are those of a LocalResourceQuota. What is available is what the view says.
export function barsOfView(view: LocalQuota): Bar[] {
  const status = view.status;
  return sorted(status?.total?.hard, (resource, hard) => {
    const bar = barOf(resource, hard, status?.total?.used?.[resource], status?.reserved?.[resource]);
    const here = status?.used?.[resource] ?? (bar.used === unknown ? unknown : '0');
    return { ...bar, available: status?.available?.[resource] ?? bar.available, here };
  });
}

function sorted(hard: Quantities | undefined, make: (resource: string, hard: string) => Bar): Bar[] {
  return Object.entries(hard ?? {})
    .map(([resource, limit]) => make(resource, limit))
    .sort((a, b) => a.resource.localeCompare(b.resource));
}

// fullness orders quotas: the fullest resource decides.
export function fullness(bars: Bar[]): number {
  return Math.max(-1, ...bars.map(bar => bar.percent ?? -1));
}

// inWords says all of a bar, for people who don't see it.
export function inWords(bar: Bar): string {
  if (bar.tone === 'unknown') {
    return `not counted at present, of ${bar.hard}`;
  }
  return `${bar.used} used, ${bar.reserved} reserved, ${bar.available} available, of ${bar.hard} (${bar.percent}%)`;
}
