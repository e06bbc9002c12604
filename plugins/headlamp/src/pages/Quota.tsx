// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Box, FormControl, InputLabel, NativeSelect, Typography } from '@mui/material';
import { useState } from 'react';
import { useParams } from 'react-router-dom';
import { group, useFollowed } from '../cluster/headlamp';
import { barsOf, unknown } from '../model/bars';
import { waitingIn } from '../model/refusals';
import type { ClusterQuota, LocalQuota } from '../model/types';
import { selectorOf, trendOf, useOf } from '../model/use';
import { counted, sentences } from '../model/words';
import { Bars } from '../parts/Bars';
import { Conditions, Grid, WaitingTable } from '../parts/Lists';
import { Page, Part, paths, To, useClusterName } from '../parts/Page';
import { Note, States, Time } from '../parts/States';
import { ModeTags, OperatorState, quotasPath } from './Quotas';

const viewsPath = `${group}/localresourcequotas`;

// Namespaces are those that share the quota, the one that uses most of a resource first.
function Namespaces({ quota }: { quota: ClusterQuota }) {
  const resources = Object.keys(quota.spec.quota.hard ?? {}).sort();
  const [chosen, setChosen] = useState('');
  const resource = resources.includes(chosen) ? chosen : (resources[0] ?? '');
  const rows = useOf(quota, resource);
  return (
    <Part title="Namespaces by use">
      <FormControl sx={{ mb: 1 }}>
        <InputLabel htmlFor="resource" variant="standard">
          Resource
        </InputLabel>
        <NativeSelect inputProps={{ id: 'resource' }} value={resource} onChange={event => setChosen(event.target.value)}>
          {resources.map(name => (
            <option key={name}>{name}</option>
          ))}
        </NativeSelect>
      </FormControl>
      {rows.length === 0 ? (
        <Note severity="info">The quota selects no namespace.</Note>
      ) : (
        <Grid
          label={`Namespaces by use of ${resource}`}
          columns={['Namespace', 'Used', 'Of the limit', 'Of what all use']}
          rows={rows.map(row => ({
            key: row.namespace,
            cells: [row.namespace, row.used, <Share key="hard" part={row.ofHard} />, <Share key="used" part={row.ofUsed} />],
          }))}
        />
      )}
    </Part>
  );
}

function Share({ part }: { part: number | null }) {
  return part === null ? (
    unknown
  ) : (
    <Box sx={{ display: 'flex', alignItems: 'center', gap: 1, minWidth: 90 }}>
      <Box aria-hidden sx={{ flex: 1, height: 8, border: 1, borderColor: 'text.secondary' }}>
        <Box sx={{ height: '100%', width: `${part * 100}%`, bgcolor: 'text.secondary' }} />
      </Box>
      {Math.floor(part * 100)}%
    </Box>
  );
}

// Past is what was used at most, and what didn't fit.
function Past({ quota }: { quota: ClusterQuota }) {
  const { history = [], historySince, mostRefused } = quota.status ?? {};
  return (
    <Part title="Peaks and refusals">
      {history.length === 0 ? (
        <Note severity="info">Nothing is known yet.</Note>
      ) : (
        <>
          <Typography>
            A day is one in UTC. Known since <Time at={historySince} />. With the modes Warn and Audit, what didn’t fit was admitted.
          </Typography>
          <Grid
            label="Peaks and refusals of each resource"
            columns={['Resource', 'Trend', 'Peak today', '7 days', '30 days', 'Didn’t fit: today', '7 days ', '30 days ', 'Largest shortfall']}
            rows={history.map(({ resource, peak, refused, trend }) => ({
              key: resource,
              cells: [
                resource,
                <TrendSigns key="trend" trend={trend} />,
                peak.day,
                peak.week,
                peak.month,
                refused?.day ?? 0,
                refused?.week ?? 0,
                refused?.month ?? 0,
                refused?.shortfall ?? '-',
              ],
            }))}
          />
        </>
      )}
      {mostRefused && (
        <Typography sx={{ mt: 1 }}>
          Didn’t fit most often: {mostRefused.kind ? `${mostRefused.kind}/${mostRefused.name}` : 'objects without a controller'} in{' '}
          {mostRefused.namespace}, {counted(mostRefused.requests, 'request')} in 30 days.
        </Typography>
      )}
    </Part>
  );
}

function TrendSigns({ trend }: { trend: string | undefined }) {
  const drawn = trendOf(trend);
  return drawn && <Box component="span" role="img" aria-label={drawn.inWords}>{drawn.signs}</Box>;
}

function Trial({ quota }: { quota: ClusterQuota }) {
  const trial = quota.status?.trial;
  return !trial ? null : (
    <Part title="Trial">
      <Typography>
        Judged and never enforced, since <Time at={trial.since} />.
      </Typography>
      {(trial.wouldRefuse ?? []).length === 0 ? (
        <Note severity="success">It would have refused nothing.</Note>
      ) : (
        <Grid
          label="What the trial would have refused"
          columns={['Resource', 'Tried limit', 'Would refuse', 'Largest shortfall', 'Last']}
          rows={(trial.wouldRefuse ?? []).map(({ resource, requests, largestShortfall, last }) => ({
            key: resource,
            cells: [resource, quota.spec.trial?.hard?.[resource] ?? '-', requests, largestShortfall, <Time key="last" at={last} />],
          }))}
        />
      )}
    </Part>
  );
}

function Waiting({ quota }: { quota: ClusterQuota }) {
  const followed = useFollowed<LocalQuota>(useClusterName(), viewsPath, `metadata.name=${quota.metadata.name}`);
  const waiting = waitingIn(followed.items);
  return (
    <Part title="Who waits">
      <States of={followed} what="LocalResourceQuotas" empty={<>The quota has no local views yet.</>}>
        {waiting.length === 0 ? <Note severity="success">No workload waits for room.</Note> : <WaitingTable waiting={waiting} of={quota.metadata.name} />}
      </States>
    </Part>
  );
}

function Changes({ quota }: { quota: ClusterQuota }) {
  const changes = quota.status?.changes ?? [];
  return changes.length === 0 ? null : (
    <Part title="Changes">
      <Grid
        label="The last changes of limits, modes and the selector"
        columns={['When', 'Who', 'What', 'From', 'To']}
        rows={changes.map((change, index) => ({
          key: String(index),
          cells: [<Time key="at" at={change.at} />, change.by, `${change.field} ${change.resource ?? ''}`, change.from ?? '-', change.to ?? '-'],
        }))}
      />
    </Part>
  );
}

function Details({ quota }: { quota: ClusterQuota }) {
  const { name, generation } = quota.metadata;
  const outdated = (quota.status?.observedGeneration ?? 0) < (generation ?? 0);
  return (
    <>
      <Typography sx={{ overflowWrap: 'anywhere' }}>
        {counted(quota.status?.namespaceCount ?? 0, 'namespace')} with {selectorOf(quota)}
      </Typography>
      <ModeTags quota={quota} />
      {outdated && <Note severity="warning">Stale: the figures are of an older spec. The operator counts for the present one.</Note>}
      <Bars bars={barsOf(quota)} quota={name} mode={quota.spec.enforcement?.mode} />
      <Part title="Conditions">
        <Conditions said={sentences(quota.status?.conditions, generation)} />
      </Part>
      <Namespaces quota={quota} />
      <Waiting quota={quota} />
      <Past quota={quota} />
      <Trial quota={quota} />
      <Changes quota={quota} />
    </>
  );
}

// Quota shows all of one quota.
export function Quota() {
  const { name } = useParams<{ name: string }>();
  const followed = useFollowed<ClusterQuota>(useClusterName(), quotasPath, `metadata.name=${name}`);
  return (
    <Page title={`Quota ${name}`}>
      <Typography>
        <To path={paths.quotas}>All quotas</To>
      </Typography>
      <OperatorState />
      <States of={followed} what="ClusterResourceQuotas" empty={<>There is no ClusterResourceQuota {name}.</>}>
        {followed.items.map(quota => (
          <Details key={quota.metadata.uid} quota={quota} />
        ))}
      </States>
    </Page>
  );
}
