// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

// @vitest-environment jsdom

import { cleanup, render, screen, within } from '@testing-library/react';
import { MemoryRouter } from 'react-router-dom';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Followed, loading, type Phase } from '../model/staleness';
import type { ClusterQuota, KubeEvent, LocalQuota } from '../model/types';
import { Quota } from './Quota';
import { Section } from './Sections';
import { RefusedIn, View } from './Views';

// The end of a path -> what is known of the list there.
let lists: Record<string, Followed<unknown>>;

vi.mock('../cluster/headlamp', () => ({
  group: '/apis/quota.sharedquota.dev/v1',
  useFollowed: (_: string, path: string) => lists[path.split('/').at(-1) ?? ''] ?? loading,
}));
vi.mock('@kinvolk/headlamp-plugin/lib', () => ({
  CommonComponents: { SectionBox: ({ children }: { children: unknown }) => children },
  K8s: { useCluster: () => 'main' },
}));

function list(items: unknown[], phase: Phase = 'live', truncated = false): Followed<unknown> {
  return { phase, items, heardAt: Date.now(), error: '', truncated };
}

function view(waiting: string[]): LocalQuota {
  return {
    metadata: { name: 'payments', namespace: 'shop', uid: 'v' },
    status: { waiting: waiting.map(name => ({ kind: 'ReplicaSet', name, since: '2026-01-01T00:00:00Z' })) },
  };
}

const set = { metadata: { name: 'web-1', namespace: 'shop', uid: 's', ownerReferences: [{ uid: 'd' }] } };

afterEach(cleanup);
beforeEach(() => {
  lists = { localresourcequotas: list([view([])]), replicasets: list([set]), events: list([]) };
});

describe('the section of a Deployment', () => {
  const show = () =>
    render(
      <MemoryRouter>
        <Section resource={{ kind: 'Deployment', metadata: { name: 'web', namespace: 'shop', uid: 'd' } }} />
      </MemoryRouter>
    );
  const all = 'This Deployment doesn’t wait for room.';

  it('says that it doesn’t wait', () => {
    show();
    expect(screen.getByText(all)).toBeTruthy();
  });

  it('says that it waits, and promises nothing', () => {
    lists.localresourcequotas = list([view(['other', 'web-1'])]);
    show();
    expect(screen.getByText('This Deployment waits for room.')).toBeTruthy();
    expect(screen.getAllByRole('cell', { name: 'ReplicaSet/web-1' })).not.toHaveLength(0);
    // The table of the Deployment, and that of the quota's view.
    for (const of of ['Deployment web', 'payments in shop']) {
      expect(screen.getByRole('region', { name: `Workloads that wait for room: ${of}` })).toBeTruthy();
    }
    expect(screen.queryByText(all)).toBeNull();
  });

  it.each([
    ['loading', 'Loading ReplicaSets in shop'],
    ['denied', 'You may not read ReplicaSets in shop.'],
    ['failed', /^The API server doesn’t answer/],
  ] as const)('says nothing of waiting while ReplicaSets are %s', (phase, text) => {
    lists.replicasets = list([], phase);
    show();
    expect(screen.getByText(text)).toBeTruthy();
    expect(screen.queryByText(all)).toBeNull();
  });

  it('says nothing of waiting if its ReplicaSets may be left out', () => {
    lists.replicasets = list([set], 'live', true);
    show();
    expect(screen.getByText(/^There are more ReplicaSets in shop/)).toBeTruthy();
    expect(screen.queryByText(all)).toBeNull();
  });

  it('doesn’t know whether it waits if a view may name too few', () => {
    lists.localresourcequotas = list([view(Array.from({ length: 20 }, (_, index) => `other-${index}`))]);
    show();
    expect(screen.getByText(/^This Deployment isn’t among the 20 workloads/)).toBeTruthy();
    expect(screen.queryByText(all)).toBeNull();
  });
});

describe('events of a namespace', () => {
  const heading = 'Refused, or admitted by the mode';

  it('are not called refusals, because the mode may admit', () => {
    const metadata = { name: 'e', namespace: 'shop', uid: 'e' };
    const event: KubeEvent = { metadata, reason: 'WouldExceed', message: 'm', involvedObject: { name: 'payments' } };
    lists.events = list([event]);
    render(<RefusedIn namespace="shop" />);
    expect(screen.getByRole('region', { name: `${heading}, in shop` })).toBeTruthy();
    expect(screen.getByRole('heading', { name: heading })).toBeTruthy();
    expect(screen.getByText(/was admitted because of the mode/)).toBeTruthy();
  });

  it('may be none', () => {
    render(<RefusedIn namespace="shop" />);
    expect(screen.getByText('No event tells of such a request. By default, the API server keeps events for an hour.')).toBeTruthy();
  });
});

describe('surge', () => {
  const workloads = [{ kind: 'Deployment', namespace: 'shop', name: 'web', since: '2026-11-01T08:00:00Z' }];

  it('and who holds it are shown of a quota', () => {
    const quota: ClusterQuota = {
      metadata: { name: 'payments', uid: 'q' },
      spec: { selector: {}, quota: { hard: { pods: '5' } }, surge: { hard: { pods: '3' } } },
      status: {
        surge: { hard: { pods: '3' }, used: { pods: '2' }, workloads },
        peaks: [{ resource: 'pods', month: { amount: '5', at: '2026-11-02T08:00:00Z' }, surge: { amount: '2', at: '2026-11-02T08:00:00Z' } }],
      },
    };
    lists.clusterresourcequotas = list([quota]);
    render(
      <MemoryRouter>
        <Quota />
      </MemoryRouter>
    );
    expect(screen.getByText('pods: 3 more for replacements, of which 2 is taken.')).toBeTruthy();
    const cells = (name: string) => within(screen.getByRole('region', { name })).getAllByRole('cell').map(cell => cell.textContent?.split(',')[0]);
    expect(cells('Workloads that hold surge: payments').slice(0, 2)).toEqual(['Deployment/web', 'shop']);
    expect(cells('Peaks of each resource')).toEqual(['pods', '?', '?', '5', '2']);
  });

  it.each([
    ['of its own workloads', workloads, 'Deployment/web'],
    ['of others, whose names it doesn’t show', undefined, 'No workload of this namespace holds it. Wait until rollouts in others have ended.'],
  ] as const)('is shown in a view: that %s', (_, held, text) => {
    const surge = { hard: { pods: '3' }, used: { pods: '1' }, workloads: held ? [...held] : undefined };
    render(<View view={{ metadata: { name: 'payments', namespace: 'shop', uid: 'v' }, status: { surge } }} />);
    expect(screen.getByText('pods: 3 more for replacements, of which 1 is taken.')).toBeTruthy();
    expect(screen.getByText(text)).toBeTruthy();
  });
});

describe('the page of a quota', () => {
  it('shows the mode, and peaks with their times', () => {
    const peak = (amount: string, day: string) => ({ amount, at: `2026-11-${day}T08:00:00Z` });
    const quota: ClusterQuota = {
      metadata: { name: 'payments', uid: 'q' },
      spec: { selector: {}, quota: { hard: { pods: '5' } }, enforcement: { mode: 'Warn' } },
      status: {
        namespaces: [{ namespace: 'shop', status: {} }],
        peaks: [{ resource: 'pods', day: peak('1', '26'), week: peak('3', '24'), month: peak('4', '02') }],
      },
    };
    lists.clusterresourcequotas = list([quota]);
    render(
      <MemoryRouter>
        <Quota />
      </MemoryRouter>
    );
    expect(screen.getByText('Mode Warn: admits what doesn’t fit, and warns')).toBeTruthy();
    // What isn't counted has no share either.
    const cells = (name: string) => within(screen.getByRole('region', { name })).getAllByRole('cell').map(cell => cell.textContent);
    expect(cells('Namespaces by use of pods')).toEqual(['shop', '?', '?', '?']);
    expect(cells('Peaks of each resource').map(text => text?.split(',')[0])).toEqual(['pods', '1', '3', '4']);
  });
});
