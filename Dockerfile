# The gateway, the Conversations API and the inspector: docs/howto/serve.md, "In a container".
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE alembic.ini ./
COPY migrations migrations
COPY reasoning_store reasoning_store
RUN python -m venv /opt/reasoning-store
RUN /opt/reasoning-store/bin/pip install --no-cache-dir '.[server,postgres,otel]'

FROM python:3.13-slim
COPY --from=build /opt/reasoning-store /opt/reasoning-store
RUN useradd --system --uid 10001 --home-dir /data reasoning-store \
    && install -d -m 0700 -o reasoning-store -g reasoning-store /data
USER reasoning-store
WORKDIR /data
VOLUME /data
ENV PATH=/opt/reasoning-store/bin:$PATH \
    REASONING_STORE_URL=sqlite:////data/chat.db
EXPOSE 8765
HEALTHCHECK CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=2)"]
ENTRYPOINT ["reasoning-store"]
CMD ["serve", "--host", "0.0.0.0", "--upstream", "https://api.deepseek.com"]
