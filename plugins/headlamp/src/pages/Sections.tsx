// Copyright The Shared Quota Authors.
// SPDX-License-Identifier: Apache-2.0

import { Typography } from '@mui/material';
import { useFollowed } from '../cluster/headlamp';
import { refusalsOf, waitingIn } from '../model/refusals';
import type { KubeEvent, KubeItem, LocalQuota } from '../model/types';
import { Refusals, WaitingTable } from '../parts/Lists';
import { AddedPart, paths, To, useClusterName } from '../parts/Page';
import { Note, States } from '../parts/States';
import { eventsPathOf, RefusedIn, ViewsOf, viewsPathOf } from './Views';

interface Resource {
  kind: string;
  metadata: { name: string; namespace?: string; uid: string };
}

interface Owned extends KubeItem {
  metadata: KubeItem['metadata'] & { ownerReferences?: { uid: string }[] };
}

// NamespaceSection is what the page of a namespace shows of its quotas.
function NamespaceSection({ name }: { name: string }) {
  const followed = useFollowed<LocalQuota>(useClusterName(), viewsPathOf(name));
  return (
    <AddedPart title="Shared quotas">
      <ViewsOf namespace={name} followed={followed} />
      <RefusedIn namespace={name} />
    </AddedPart>
  );
}

// A view names those that have waited longest, and no more than so many.
const mostNamed = 20;

// NotWaiting is said of a Deployment that no view names.
function NotWaiting({ views }: { views: LocalQuota[] }) {
  return views.some(view => (view.status?.waiting ?? []).length >= mostNamed) ? (
    <Note severity="info">This Deployment isn’t among the {mostNamed} workloads that have waited longest. It may wait, too.</Note>
  ) : (
    <Note severity="success">This Deployment doesn’t wait for room.</Note>
  );
}

// DeploymentSection says whether a Deployment waits for room, and what is left.
function DeploymentSection({ name, namespace, uid }: { name: string; namespace: string; uid: string }) {
  const cluster = useClusterName();
  const views = useFollowed<LocalQuota>(cluster, viewsPathOf(namespace));
  const sets = useFollowed<Owned>(cluster, `/apis/apps/v1/namespaces/${encodeURIComponent(namespace)}/replicasets`);
  const ofDeployment = `involvedObject.kind=Deployment,involvedObject.name=${name}`;
  const events = useFollowed<KubeEvent>(cluster, eventsPathOf(namespace), ofDeployment);
  const own = new Set(sets.items.filter(set => set.metadata.ownerReferences?.some(owner => owner.uid === uid)).map(set => set.metadata.name));
  const waiting = waitingIn(views.items).filter(owner => owner.kind === 'ReplicaSet' && own.has(owner.name));
  const short = refusalsOf(events.items);
  return (
    <AddedPart title="Shared quotas">
      <States of={views} what={`LocalResourceQuotas in ${namespace}`} empty={<>No shared quota covers {namespace}.</>}>
        <States of={sets} what={`ReplicaSets in ${namespace}`} empty={<>There is no ReplicaSet in {namespace} yet.</>}>
          {waiting.length > 0 ? (
            <>
              <Note severity="warning">This Deployment waits for room.</Note>
              <WaitingTable waiting={waiting} of={`Deployment ${name}`} />
            </>
          ) : (
            !sets.truncated && <NotWaiting views={views.items} />
          )}
        </States>
        {short.length > 0 && <Refusals refusals={short} />}
        <Typography sx={{ my: 1 }}>
          <To path={paths.fit}>Does it fit?</To> tries a manifest. What is left:
        </Typography>
        <ViewsOf namespace={namespace} followed={views} />
      </States>
    </AddedPart>
  );
}

// Section is what the plugin adds to Headlamp's own pages.
export function Section({ resource }: { resource: Resource | null | undefined }) {
  if (resource?.kind === 'Namespace') {
    return <NamespaceSection name={resource.metadata.name} />;
  }
  if (resource?.kind === 'Deployment' && resource.metadata.namespace) {
    return <DeploymentSection name={resource.metadata.name} namespace={resource.metadata.namespace} uid={resource.metadata.uid} />;
  }
  return null;
}
