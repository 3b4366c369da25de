# One image for all three processes: docker build -t fluence:0.1.0 .
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements/run.txt requirements/
RUN python -m venv /venv && /venv/bin/pip install --no-cache-dir --require-hashes --no-deps \
    -r requirements/run.txt
COPY pyproject.toml README.md LICENSE ./
COPY fluence fluence
COPY groups groups
COPY kube kube
COPY certs certs
COPY webhook webhook
COPY controller controller
COPY scheduler_core scheduler_core
COPY scheduler scheduler
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels . \
    && /venv/bin/pip install --no-cache-dir --no-deps /wheels/*.whl \
    && /venv/bin/pip check

FROM python:3.11-slim
COPY --from=build /venv /venv
# A number, so that runAsNonRoot can be checked.
USER 65532:65532
ENV PYTHONUNBUFFERED=1
ENTRYPOINT ["/venv/bin/fluence"]
CMD ["--help"]
