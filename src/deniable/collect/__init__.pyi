from deniable.collect.analyst import Analyst as Analyst
from deniable.collect.client import AsyncClient as AsyncClient, Client as Client
