// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// @vitest-environment jsdom

import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, describe, expect, it } from 'vitest';
import type { Bar } from '../model/bars';
import type { Followed, Phase } from '../model/staleness';
import { sentences } from '../model/words';
import { Bars } from './Bars';
import { Conditions, Refusals, WaitingTable } from './Lists';
import { States } from './States';

afterEach(cleanup);

const bar: Bar = {
  resource: 'requests.cpu',
  hard: '8',
  used: '6',
  reserved: '1',
  available: '1',
  here: '2',
  usedShare: 0.75,
  reservedShare: 0.125,
  percent: 87,
  tone: 'near',
};

describe('a bar', () => {
  it('is a meter that says its figures', () => {
    render(<Bars bars={[bar]} quota="payments" />);
    const meter = screen.getByRole('meter', { name: 'requests.cpu of payments' });
    expect(meter.getAttribute('aria-valuenow')).toBe('87');
    expect(meter.getAttribute('aria-valuetext')).toBe('6 used, 1 reserved, 1 available, of 8 (87%)');
    expect(screen.getByText('87%, near its limit')).toBeTruthy();
    expect(screen.getByText(/2 used here/)).toBeTruthy();
  });

  it('stays in its range above the limit, and without a figure', () => {
    render(<Bars bars={[{ ...bar, percent: 140, tone: 'over' }, { ...bar, resource: 'pods', used: '?', percent: null, tone: 'unknown' }]} quota="q" />);
    expect(screen.getAllByRole('meter').map(meter => meter.getAttribute('aria-valuenow'))).toEqual(['100', '0']);
    expect(screen.getByText('?, not counted')).toBeTruthy();
  });
});

describe('the state of a list', () => {
  const state = (phase: Phase, items: unknown[] = []): Followed<unknown> => ({ phase, items, heardAt: Date.now() - 5000, error: 'Unreachable', truncated: false });
  const show = (of: Followed<unknown>) =>
    render(
      <States of={of} what="quotas" empty={<>None.</>} denied={<>Not you.</>}>
        <p>figures</p>
      </States>
    );

  it.each([
    ['loading', 'Loading quotas'],
    ['denied', 'Not you.'],
    ['missing', /operator isn’t installed/],
    ['failed', /doesn’t answer: Unreachable/],
    ['live', 'None.'],
  ] as const)('%s is said instead of figures', (phase, text) => {
    show(state(phase));
    expect(screen.getByText(text)).toBeTruthy();
    expect(screen.queryByText('figures')).toBeNull();
  });

  it('stale is said above the figures', () => {
    show(state('stale', [1]));
    expect(screen.getByText(/^Stale: the API server was last heard 5s ago/)).toBeTruthy();
    expect(screen.getByText('figures')).toBeTruthy();
  });

  it('too many is said', () => {
    show({ ...state('live', [1]), truncated: true });
    expect(screen.getByText(/There are more quotas/)).toBeTruthy();
  });
});

describe('lists', () => {
  it('of conditions have words, the message and what to do', () => {
    const said = sentences([{ type: 'Exceeded', status: 'True', reason: 'UsedAboveHard', message: 'pods: used 5, hard 4', observedGeneration: 1 }], 2);
    render(<Conditions said={said} />);
    expect(screen.getByRole('alert').textContent).toBe(
      'Exceeded: More is used than the quota allows. Nothing is removed. Requests for more are refused if the mode is Deny. Delete unneeded objects, or raise spec.quota.hard.UsedAboveHard: pods: used 5, hard 4 (This is about an older spec.)'
    );
  });

  it('of refusals say why, and how often', () => {
    render(<Refusals refusals={[{ key: 'k', at: new Date().toISOString(), namespace: 'shop', about: 'payments', why: 'Why.', message: 'm', count: 3 }]} />);
    expect(screen.getByRole('listitem').textContent).toContain('payments in shop, 0s ago, 3 times');
  });

  it('of who waits can be reached by the keyboard', () => {
    render(<WaitingTable waiting={[{ kind: 'ReplicaSet', name: 'web-1', since: new Date().toISOString(), short: { pods: '2' }, namespace: 'shop', quota: 'payments' }]} of="payments" />);
    expect(screen.getByRole('region', { name: 'Workloads that wait for room: payments' }).getAttribute('tabindex')).toBe('0');
    expect(screen.getByRole('cell', { name: 'pods: 2' })).toBeTruthy();
  });
});
