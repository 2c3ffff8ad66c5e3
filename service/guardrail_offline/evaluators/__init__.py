"""One file per family of evaluators; importing this package registers all of them."""

from guardrail_offline.evaluators import agent_sanity as agent_sanity
from guardrail_offline.evaluators import bleu as bleu
from guardrail_offline.evaluators import citations as citations
from guardrail_offline.evaluators import claim_metrics as claim_metrics
from guardrail_offline.evaluators import classification as classification
from guardrail_offline.evaluators import consistency as consistency
from guardrail_offline.evaluators import embeddings as embeddings
from guardrail_offline.evaluators import entities as entities
from guardrail_offline.evaluators import from_detectors as from_detectors
from guardrail_offline.evaluators import judges as judges
from guardrail_offline.evaluators import language_model as language_model
from guardrail_offline.evaluators import nuggets as nuggets
from guardrail_offline.evaluators import retrieval as retrieval
from guardrail_offline.evaluators import rouge as rouge
from guardrail_offline.evaluators import steps as steps
from guardrail_offline.evaluators import summaries as summaries
from guardrail_offline.evaluators import triad as triad
from guardrail_offline.evaluators import yes_no_rules as yes_no_rules
