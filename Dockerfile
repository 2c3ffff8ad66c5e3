# Two stages: build the wheels of the service and the client, then install only them. No compiler, no
# torch, no offline module, no network at run time.
ARG PYTHON_VERSION=3.11

FROM python:${PYTHON_VERSION}-slim AS build
WORKDIR /src
COPY requirements/runtime.txt requirements/
RUN python -m venv /opt/guardrail \
    && /opt/guardrail/bin/pip install --no-cache-dir --no-deps --requirement requirements/runtime.txt
COPY pyproject.toml setup.py release.py VERSION README.md LICENSE ./
COPY guardrail_client guardrail_client
COPY service/guardrail_service service/guardrail_service
COPY models/embedded models/embedded
COPY configs configs
RUN /opt/guardrail/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels ./guardrail_client . \
    && /opt/guardrail/bin/pip install --no-cache-dir --no-deps /wheels/*.whl

FROM python:${PYTHON_VERSION}-slim
LABEL org.opencontainers.image.title="rag-guardrail" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin guardrail
COPY --from=build /opt/guardrail /opt/guardrail
ENV PATH=/opt/guardrail/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    GUARDRAIL_HOST=0.0.0.0 \
    GUARDRAIL_PORT=8080 \
    TMPDIR=/dev/shm
USER 10001
# It listens on every address, so it starts with a key or with the word of whoever runs it:
#   docker run -e GUARDRAIL_API_KEYS=... or -v keys:/keys:ro -e GUARDRAIL_API_KEYS_FILE=/keys/api_key
#   docker run -e GUARDRAIL_ALLOW_ANONYMOUS=1
EXPOSE 8080
# Run it with a read-only root file system: the one file written, while the language model unpacks at
# start-up, goes to /dev/shm, which engines mount writable.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import os,urllib.request as u; u.urlopen('http://127.0.0.1:%s/readyz' % os.environ['GUARDRAIL_PORT'], timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["guardrail"]
CMD ["serve"]
