// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { mkdirSync, mkdtempSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { goTo, launch, type Person, proxies, shows, type View, violations, visit } from './world';

const shots = process.env.SCREENSHOTS ?? mkdtempSync(`${tmpdir()}/headlamp-`);

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
      - name: large
        image: registry.example/large
        resources: {requests: {cpu: 1m, memory: 1Mi}}`;

interface Shown {
  name: string;
  person: Person;
  path: string;
  // Whether all of the page is the plugin's, as it is unless this is false.
  own?: boolean;
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
  { name: 'namespace', person: 'owner', path: '/namespaces/checkout', own: false, ready: page => shows(page, /refused services "third"/) },
  { name: 'deployment', person: 'owner', path: '/deployments/checkout/search', own: false, ready: page => shows(page, /^This Deployment waits/) },
];

// docs/kubectl-crq.md shows pictures of this width, which must be small files.
const documented = 1024;
const mostBytes = 150_000;

const views: View[] = [400, documented, 1600].flatMap(width => (['light', 'dark'] as const).map(theme => ({ width, theme })));

// outside lists what of the plugin goes beyond the window. A table scrolls in itself.
function outside(page: Page): Promise<string[]> {
  return page.locator('[data-shared-quota]').evaluateAll(parts =>
    parts
      .flatMap(part => [part, ...part.querySelectorAll('*')])
      .filter(element => !element.parentElement?.closest('.MuiTableContainer-root'))
      .filter(element => {
        const { left, right } = element.getBoundingClientRect();
        return Math.floor(left) < 0 || Math.ceil(right) > window.innerWidth;
      })
      .map(element => element.outerHTML.slice(0, 200))
  );
}

let browser: Browser;
const opened = new Map<Person, Page>();

beforeAll(async () => {
  mkdirSync(shots, { recursive: true });
  browser = await launch();
});
afterAll(() => browser.close());

// look changes the window and the theme of a page that is open.
async function look(page: Page, view: View) {
  await page.setViewportSize({ width: view.width, height: view.width === documented ? 768 : 1000 });
  await page.evaluate(theme => window.dispatchEvent(new CustomEvent('theme', { detail: theme })), view.theme);
  // The text of Headlamp's dark theme is light.
  const red = () => page.getByRole('main').evaluate(main => Number(/\d+/.exec(getComputedStyle(main).color)?.[0]));
  await expect.poll(async () => (await red()) > 128).toBe(view.theme === 'dark');
}

describe.each(pages)('$name', ({ name, person, path, own = true, ready }) => {
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
    expect(await page.locator('[data-shared-quota]').count()).toBeGreaterThan(0);
    expect(await outside(page)).toEqual([]);
    // On a page of Headlamp's own, the plugin's part may be far below.
    await (own || page.locator('[data-shared-quota]').first().evaluate(part => part.scrollIntoView()));
    const shot = `${shots}/${name}-${view.width}-${view.theme}.png`;
    await page.screenshot({ path: shot });
    expect(view.width === documented ? statSync(shot).size : 0).toBeLessThan(mostBytes);
  });
});
