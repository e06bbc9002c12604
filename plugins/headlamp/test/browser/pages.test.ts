// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ClusterQuota } from '../../src/model/types';
import { goTo, kubectl, launch, type Person, proxies, proxy, shows, violations, visit, wide } from './world';

let browser: Browser;
let page: Page;

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

// Each person has one page, for it takes long to load.
const pages = new Map<Person, Page>();

async function open(person: Person, path: string): Promise<void> {
  const known = pages.get(person);
  page = known ?? (await visit(browser, proxies[person](), path));
  pages.set(person, page);
  await (known && goTo(page, path));
}

function quota(name: string): ClusterQuota {
  return JSON.parse(kubectl('get', 'crq', name, '-o', 'json')) as ClusterQuota;
}

const meter = (resource: string, of: string) => page.getByRole('meter', { name: `${resource} of ${of}`, exact: true });

// figures waits for those of a meter: the page may follow a moment after the API server.
const figures = (resource: string, of: string) =>
  expect.poll(() => meter(resource, of).getAttribute('aria-valuetext'), { timeout: 60_000 });

// tried pastes a manifest and has it tried, by the keyboard alone.
async function tried(manifest: string) {
  await page.getByLabel('Manifests, as YAML or JSON').fill(manifest);
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'Answers' }).locator('.MuiAlert-root').first().waitFor();
}

describe('an administrator', () => {
  it('sees each quota with the figures that the API server has', async () => {
    await open('admin', '/shared-quotas');
    await meter('pods', 'payments').waitFor();
    const { status } = quota('payments');
    const all = Object.entries(status?.total?.used ?? {});
    expect(all).not.toHaveLength(0);
    for (const [resource, used] of all) {
      const hard = status?.total?.hard?.[resource];
      await figures(resource, 'payments').toMatch(new RegExp(`^${used.replace('.', '\\.')} used, .* of ${hard} `));
    }
    await shows(page, 'Mode Audit: admits what doesn’t fit, and notes it in the audit log');
    await shows(page, 'The cluster doesn’t serve a resource that the quota names.');
    const names = () => page.getByRole('article').getByRole('heading', { level: 2 }).allInnerTexts();
    await expect.poll(names, { timeout: 60_000 }).toEqual(['payments', 'lab']);
  });

  it('sees changes without loading the page again', async () => {
    await open('admin', '/shared-quotas');
    await meter('services.loadbalancers', 'payments').waitFor();
    expect(await meter('services.loadbalancers', 'payments').getAttribute('aria-valuetext')).toContain('2 used');
    kubectl('delete', 'service', 'api', '-n', 'invoices');
    await figures('services.loadbalancers', 'payments').toContain('1 used');
    kubectl('create', 'service', 'loadbalancer', 'api', '--tcp=443', '-n', 'invoices');
    await figures('services.loadbalancers', 'payments').toContain('2 used');
  });

  it('finds a quota by its selector, and all of it by the keyboard', async () => {
    await open('admin', '/shared-quotas');
    await page.getByLabel('Name or selector').fill('team=pay');
    await expect.poll(() => page.getByRole('article').count()).toBe(1);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Quota payments' }).waitFor();
    await shows(page, 'The API server asks about every request that the quota limits.');
  });

  it('sees namespaces by use, peaks and who waits', async () => {
    await open('admin', '/shared-quotas/payments');
    const table = (resource: string) => page.getByRole('region', { name: `Namespaces by use of ${resource}` });
    await table('count/deployments.apps').waitFor();
    await page.getByLabel('Resource', { exact: true }).focus();
    await page.keyboard.type('pods');
    await table('pods').waitFor();
    const rows = await table('pods').getByRole('row').allInnerTexts();
    const used = new Map(quota('payments').status?.namespaces?.map(({ namespace, status }) => [namespace, status.used?.pods]));
    expect(used.size).toBeGreaterThan(0);
    expect(rows.slice(1).map(row => row.split('\t').slice(0, 2))).toEqual(
      [...used].sort(([, a], [, b]) => Number(b) - Number(a)).map(([namespace, pods]) => [namespace, pods])
    );
    await page.getByRole('region', { name: 'Workloads that wait for room' }).getByText(/^ReplicaSet\/search-/).waitFor();
    const past = page.getByRole('region', { name: 'Peaks of each resource' });
    await past.getByRole('row', { name: /^services\.loadbalancers/ }).waitFor();
    // A table that is wider than the window scrolls by the keyboard.
    await page.setViewportSize({ width: 400, height: 1000 });
    await past.focus();
    await page.keyboard.press('ArrowRight');
    await expect.poll(() => past.evaluate(table => table.scrollLeft)).toBeGreaterThan(0);
    await page.setViewportSize({ width: wide.width, height: 1000 });
  });

  it('is told that a quota is missing', async () => {
    await open('admin', '/shared-quotas/nothing');
    await shows(page, 'There is no ClusterResourceQuota nothing.');
  });
});

describe('a project owner', () => {
  it('may not see quotas, and is led to the views', async () => {
    await open('owner', '/shared-quotas');
    await shows(page, /You may not read ClusterResourceQuotas/);
    await page.getByRole('main').getByRole('link', { name: 'My namespaces' }).press('Enter');
    await page.getByRole('heading', { level: 1, name: 'My namespaces' }).waitFor();
  });

  it('sees what is left of a namespace, what was refused or admitted by the mode, and why, and what waits', async () => {
    await open('owner', '/quota-views');
    await page.getByRole('textbox', { name: 'Namespace', exact: true }).fill('checkout');
    await page.keyboard.press('Enter');
    await meter('pods', 'payments in checkout').waitFor();
    const view = JSON.parse(kubectl('get', 'lrq', 'payments', '-n', 'checkout', '-o', 'json')) as { status: { available: Record<string, string> } };
    const left = Object.entries(view.status.available);
    expect(left).not.toHaveLength(0);
    for (const [resource, available] of left) {
      await figures(resource, 'payments in checkout').toContain(` ${available} available`);
    }
    await page.getByRole('heading', { name: 'Refused, or admitted by the mode' }).waitFor();
    await shows(page, 'It didn’t fit, and was refused.');
    await shows(page, /refused services "third": exceeded quota: payments/);
    await page.getByRole('region', { name: 'Workloads that wait for room' }).getByText(/^ReplicaSet\/search-/).waitFor();
    expect(await page.getByRole('main').innerText()).not.toMatch(/invoices|refunds/);
  });

  it('is told about a namespace of others, and a name that can be none', async () => {
    await open('owner', '/quota-views');
    await page.getByRole('textbox', { name: 'Namespace', exact: true }).fill('invoices');
    await page.keyboard.press('Enter');
    await shows(page, /You may not read LocalResourceQuotas in invoices/);
    await page.getByRole('textbox', { name: 'Namespace', exact: true }).fill('In Voices');
    await shows(page, /Lower-case letters/);
  });

  it('tries a manifest, and reads the warning of kubectl apply', async () => {
    const manifest = JSON.stringify({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'large', namespace: 'checkout' },
      spec: {
        replicas: 30,
        selector: { matchLabels: { app: 'large' } },
        template: { metadata: { labels: { app: 'large' } }, spec: { containers: [{ name: 'c', image: 'x', resources: { requests: { cpu: '1m', memory: '1Mi' } } }] } },
      },
    });
    await open('owner', '/quota-fit');
    await tried(manifest);
    await shows(page, 'The API server would accept it, and warns:');
    await shows(page, /^quota payments: .*30 pods can never fit/);
    expect(kubectl('get', 'deployment', '-n', 'checkout')).not.toContain('large');
  });

  it('reads the refusal, and what fits, of several manifests', async () => {
    const service = (name: string, type: string) =>
      `apiVersion: v1\nkind: Service\nmetadata: {name: ${name}}\nspec: {type: ${type}, ports: [{port: 80}]}\n`;
    await open('owner', '/quota-fit');
    await page.getByLabel('Namespace, for objects that name none').fill('checkout');
    await tried(`${service('small', 'ClusterIP')}---\n${service('fourth', 'LoadBalancer')}---\napiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: invoices}\n`);
    const answers = page.getByRole('region', { name: 'Answers' });
    await answers.getByText('Service checkout/small: The API server would accept it, without a warning.').waitFor();
    await answers.getByText(/denied the request: exceeded quota: payments, requested: services\.loadbalancers=1, used: services\.loadbalancers=2/).waitFor();
    await answers.getByText(/^pods "p" is forbidden: User "olga" cannot patch/).waitFor();
    expect(kubectl('get', 'service', '-n', 'checkout')).not.toMatch(/small|fourth/);
  });

  it('is told what is wrong with what was pasted', async () => {
    await open('owner', '/quota-fit');
    await page.getByLabel('Manifests, as YAML or JSON').fill('a: [');
    await page.getByRole('button', { name: 'Try' }).press('Enter');
    await shows(page, /^This is not YAML/);
  });

  it('sees the quotas in Headlamp’s page of the namespace', async () => {
    await open('owner', '/namespaces/checkout');
    await page.getByRole('region', { name: 'Shared quotas' }).getByText('services.loadbalancers', { exact: true }).waitFor();
  });

  it('sees in Headlamp’s page of a Deployment that it waits, and that another doesn’t', async () => {
    await open('owner', '/deployments/checkout/search');
    await shows(page, 'This Deployment waits for room.');
    await page.getByRole('region', { name: 'Workloads that wait for room: Deployment search' }).getByText(/^ReplicaSet\/search-/).waitFor();
    await open('owner', '/deployments/checkout/cart');
    await shows(page, 'This Deployment doesn’t wait for room.');
  });
});

describe('what can go wrong', () => {
  it('is shown: the API server can’t be reached any more, and can again', async () => {
    const port = Number(new URL(proxies.admin()).port) + 1000;
    let end = await proxy(port);
    try {
      page = await visit(browser, `http://127.0.0.1:${port}`, '/shared-quotas');
      await meter('pods', 'payments').waitFor();
      await end();
      await shows(page, /^Stale: the API server was last heard/);
      expect(await violations(page)).toEqual([]);
      expect(await meter('pods', 'payments').isVisible()).toBe(true);
      end = await proxy(port);
      await page.getByText(/^Stale: the API server/).waitFor({ state: 'detached' });
    } finally {
      await end();
    }
  });

  it('is shown: nothing yet, no answer, nothing installed, nothing there', async () => {
    await open('admin', '/quota-fit');
    await page.getByRole('heading', { level: 1, name: 'Does it fit?' }).waitFor();
    let answer = () => {};
    const held = new Promise<void>(resolve => (answer = resolve));
    const reply = { status: 500, json: {} as unknown };
    await page.context().route(/clusterresourcequotas/, async route => {
      await held;
      await route.fulfill({ status: reply.status, json: reply.json });
    });
    // Headlamp gives the links of its sidebar the role of buttons.
    await page.getByRole('navigation').getByRole('button', { name: 'Quotas', exact: true }).press('Enter');
    await shows(page, 'Loading ClusterResourceQuotas');
    expect(await violations(page)).toEqual([]);
    answer();
    await shows(page, /^The API server doesn’t answer/);
    expect(await violations(page)).toEqual([]);
    reply.status = 404;
    await shows(page, /the shared quota operator isn’t installed/);
    expect(await violations(page)).toEqual([]);
    Object.assign(reply, { status: 200, json: { kind: 'List', items: [], metadata: { resourceVersion: '1' } } });
    await shows(page, 'There is no ClusterResourceQuota yet.');
    expect(await violations(page)).toEqual([]);
  });
});
