// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import type { Lease } from './types';

// What is known of a list that is followed.
export type Phase = 'loading' | 'live' | 'stale' | 'denied' | 'missing' | 'failed';

export interface Followed<T> {
  phase: Phase;
  items: T[];
  // When the API server was last heard, in milliseconds.
  heardAt: number;
  error: string;
  // Whether there are more than are shown.
  truncated: boolean;
}

export const loading: Followed<never> = { phase: 'loading', items: [], heardAt: 0, error: '', truncated: false };

// The leader renews its lease every two seconds. Clocks of browsers and clusters differ.
const leaseTolerance = 2 * 60_000;

// staleOperator says since when no replica counts; null if one does, or if that isn't known. Without a leader nobody
// writes the figures.
export function staleOperator(leases: Lease[], now: number): string | null {
  const renewed = leases.map(lease => Date.parse(lease.spec?.renewTime ?? '')).filter(time => !Number.isNaN(time));
  if (renewed.length === 0) {
    return null;
  }
  const last = Math.max(...renewed);
  return now - last > leaseTolerance ? new Date(last).toISOString() : null;
}

// ago says how long ago something was, in the way of kubectl get.
export function ago(time: string | number | undefined, now: number): string {
  const at = typeof time === 'number' ? time : Date.parse(time ?? '');
  if (Number.isNaN(at)) {
    return 'unknown';
  }
  const seconds = Math.max(0, Math.floor((now - at) / 1000));
  const steps: [number, string][] = [
    [86_400, 'd'],
    [3600, 'h'],
    [60, 'm'],
  ];
  for (const [length, unit] of steps) {
    if (seconds >= 2 * length) {
      return `${Math.floor(seconds / length)}${unit}`;
    }
  }
  return `${seconds}s`;
}
