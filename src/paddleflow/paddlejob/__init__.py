"""PaddleJob, the custom resource: what its fields mean and what is to be done about a job. Pure.

``parse`` turns the object of the API server into a job or refuses it with the field and the way out; ``reconcile``
turns a job and what the cluster holds of it into a plan; ``edl`` decides how many workers elastic jobs have; ``crds``
is the resource's definition. Nothing here talks to anybody or looks at a clock.
"""

from __future__ import annotations

from paddleflow.paddlejob.actions import Action, Observed, Options, Plan
from paddleflow.paddlejob.crds import crd
from paddleflow.paddlejob.jobs import PaddleJob
from paddleflow.paddlejob.parse import Refused, parse
from paddleflow.paddlejob.reconcile import reconcile

__all__ = ["Action", "Observed", "Options", "PaddleJob", "Plan", "Refused", "crd", "parse", "reconcile"]
