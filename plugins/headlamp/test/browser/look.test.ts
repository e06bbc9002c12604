// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { mkdtempSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { close, launch, type Person, proxies, shows, type View, visit } from './world';

const axe = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
const shots = process.env.SCREENSHOTS ?? mkdtempSync(`${tmpdir()}/headlamp-`);
const mostBytes = 150_000;

const manifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: large, namespace: checkout}
spec:
  replicas: 30
  selector: {matchLabels: {app: large}}
  template:
    metadata: {labels: {app: large}}
    spec:
      containers:
      - {name: large, image: registry.example/large, resources: {requests: {cpu: 1m, memory: 1Mi}}}
`;

interface Shown {
  name: string;
  person: Person;
  path: string;
  ready: (page: Page) => Promise<unknown>;
}

const pages: Shown[] = [
  { name: 'quotas', person: 'admin', path: '/shared-quotas', ready: page => shows(page, 'services.loadbalancers') },
  {
    name: 'quota',
    person: 'admin',
    path: '/shared-quotas/payments',
    ready: page => page.getByRole('region', { name: 'Workloads that wait for room' }).waitFor(),
  },
  {
    name: 'views',
    person: 'owner',
    path: '/quota-views',
    async ready(page) {
      await page.getByLabel('Namespace').fill('checkout');
      await page.keyboard.press('Enter');
      await shows(page, /refused services "third"/);
    },
  },
  {
    name: 'fit',
    person: 'owner',
    path: '/quota-fit',
    async ready(page) {
      await page.getByLabel('Manifests, as YAML or JSON').fill(manifest);
      await page.getByRole('button', { name: 'Try' }).press('Enter');
      await shows(page, /can never fit/);
    },
  },
  { name: 'namespace', person: 'owner', path: '/namespaces/checkout', ready: page => shows(page, /refused services "third"/) },
  { name: 'deployment', person: 'owner', path: '/deployments/checkout/search', ready: page => shows(page, /^This Deployment waits/) },
];

const views: View[] = [400, 1600].flatMap(width => (['light', 'dark'] as const).map(theme => ({ width, theme })));

// Pages of Headlamp's own are Headlamp's to mend; of them, and of its sidebar, the plugin's part is looked at.
async function violations(page: Page): Promise<string[]> {
  await page.addScriptTag({ path: axe });
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run: (context: unknown) => Promise<AxeResults> } };
    return (await axe.run({ include: [['[data-shared-quota]']] })).violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join('\n')}`);
  });
  return found;
}

let browser: Browser;
beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

describe.each(views)('at $width px, $theme', view => {
  it.each(pages)('$name has nothing that axe finds, and fits the window', async ({ name, person, path, ready }) => {
    const page = await visit(browser, proxies[person](), path, view);
    await ready(page);
    expect(await violations(page)).toEqual([]);
    // What is wider than the window scrolls in itself.
    const sections = await page.locator('[data-shared-quota]').evaluateAll(found =>
      found.map(element => Math.ceil(element.getBoundingClientRect().right - window.innerWidth))
    );
    expect(sections.length).toBeGreaterThan(0);
    expect(Math.max(...sections)).toBeLessThanOrEqual(0);
    const shot = `${shots}/${name}-${view.width}-${view.theme}.png`;
    await page.screenshot({ path: shot });
    expect(statSync(shot).size).toBeLessThan(mostBytes);
    await close(page);
  });
});
