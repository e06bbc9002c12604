// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { mkdtempSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import type { AxeResults } from 'axe-core';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { goTo, launch, type Person, proxies, shows, type View, visit } from './world';

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
      await page.getByRole('textbox', { name: 'Namespace', exact: true }).fill('checkout');
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
const opened = new Map<Person, Page>();

beforeAll(async () => {
  browser = await launch();
});
afterAll(() => browser.close());

// look changes the window and the theme of a page that is open.
async function look(page: Page, view: View) {
  await page.setViewportSize({ width: view.width, height: 1000 });
  await page.evaluate(theme => window.dispatchEvent(new CustomEvent('theme', { detail: theme })), view.theme);
  // The text of Headlamp's dark theme is light.
  const red = () => page.getByRole('main').evaluate(main => Number(/\d+/.exec(getComputedStyle(main).color)?.[0]));
  await expect.poll(async () => (await red()) > 128).toBe(view.theme === 'dark');
}

describe.each(pages)('$name', ({ name, person, path, ready }) => {
  let page: Page;
  beforeAll(async () => {
    const known = opened.get(person);
    page = known ?? (await visit(browser, proxies[person](), path));
    opened.set(person, page);
    await (known && goTo(page, path));
    await ready(page);
  });

  it.each(views)('at $width px, $theme, has nothing that axe finds, and fits the window', async view => {
    await look(page, view);
    expect(await violations(page)).toEqual([]);
    // What is wider than the window scrolls in itself.
    const beyond = await page.locator('[data-shared-quota]').evaluateAll(found =>
      found.map(element => Math.ceil(element.getBoundingClientRect().right - window.innerWidth))
    );
    expect(beyond.length).toBeGreaterThan(0);
    expect(Math.max(...beyond)).toBeLessThanOrEqual(0);
    const shot = `${shots}/${name}-${view.width}-${view.theme}.png`;
    await page.screenshot({ path: shot });
    expect(statSync(shot).size).toBeLessThan(mostBytes);
  });
});
