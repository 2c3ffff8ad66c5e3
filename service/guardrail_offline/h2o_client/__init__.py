"""H2O Eval Studio's Python client over a folder in place of a server.

`from guardrail_offline import h2o_client as eval_studio_client` is the only line of a script that
changes; docs/h2o-client.md says what differs.
"""

from guardrail_offline.h2o_client.client_documents import TestDocument as TestDocument
from guardrail_offline.h2o_client.client_evaluations import Evaluation as Evaluation
from guardrail_offline.h2o_client.client_evaluations import EvaluatorInfo as EvaluatorInfo
from guardrail_offline.h2o_client.client_generation import TestCaseGenerator as TestCaseGenerator
from guardrail_offline.h2o_client.client_labs import LabModel as LabModel
from guardrail_offline.h2o_client.client_labs import ModelType as ModelType
from guardrail_offline.h2o_client.client_labs import TestLab as TestLab
from guardrail_offline.h2o_client.client_models import ModelHost as ModelHost
from guardrail_offline.h2o_client.client_tests import Test as Test
from guardrail_offline.h2o_client.client_tests import TestCase as TestCase
from guardrail_offline.h2o_client.client_tests import suite_text as suite_text
from guardrail_offline.h2o_client.client_work import EvaluationFailed as EvaluationFailed
from guardrail_offline.h2o_client.studio_client import FOLDER_VARIABLE as FOLDER_VARIABLE
from guardrail_offline.h2o_client.studio_client import Client as Client
from guardrail_offline.h2o_client.studio_client import TokenProvider as TokenProvider
